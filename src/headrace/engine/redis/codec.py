"""Between jobs and the bytes in the store. `library/jobs/job.lua` has the same layout in Lua."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, cast

import msgspec

from headrace.engine.follower_steps import followers
from headrace.engine.redis.connection.connection import Part
from headrace.engine.redis.rates import packed_rate
from headrace.engine.stored_text import storable
from headrace.errors import InvalidInput
from headrace.model.durable.awaited import Awaited, AwaitedEvent, decode_awaited, encode_awaited
from headrace.model.durable.writes import Note
from headrace.model.job import Job, NewJob
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import State
from headrace.model.times import kept_delay, kept_time, moment_of
from headrace.model.worker import WorkerInfo

_RECORD = struct.Struct("<BBHIIddddH")
_NUMBERS = struct.Struct("<HBhdd")
_MOMENT = struct.Struct("<d")
_HOLD, ASKED, _CHILD, _EXPIRES, _RATED = 1, 4, 8, 32, 64
# Pinned to its place, by being parked.
_PARKED = 2 + 128

_Numbers = tuple[int, int, int, int, int, float, float, float, float, int]


class Body(msgspec.Struct, array_like=True, gc=False):
    """What rarely changes about a job: only by `insert_by_policy`."""

    args: bytes
    max_attempts: int
    timeout: float | None
    fails_on_crash: bool
    meta: bytes | None


class StoredWorker(WorkerInfo, kw_only=True):
    """How a worker described itself. A field that a program does not know is skipped by it."""

    schema_version: int | None = None


class StoredJob(msgspec.Struct, gc=False):
    """What changes as a job moves, and what jobs are found by."""

    state: int
    flags: int
    width: int
    token: int
    attempt: int
    run_at: float
    created: float
    started: float
    completed: float
    priority: int
    queue: str
    lane: str
    worker: str
    task: str
    key: str
    source: str
    parent: str = ""
    group: str = ""

    @property
    def worker_name(self) -> str | None:
        """The name behind the worker's id."""
        return self.worker.partition("\1")[2] or None


_Told = tuple[str | Literal[False], float | Literal[False], str | Literal[False]]
"""Stage, progress and message; False for what is not told."""

_NOTHING_TOLD: _Told = (False, False, False)
_encode_body = msgspec.msgpack.Encoder().encode
decode_body = msgspec.msgpack.Decoder(Body).decode
# Older versions of msgspec know no Literal[False].
_decode_note = cast(
    "Callable[[bytes], _Told]",
    msgspec.msgpack.Decoder(tuple[str | bool, float | bool, str | bool]).decode,
)


def at(seconds: float) -> datetime:
    """Seconds since the epoch as an aware datetime."""
    return moment_of(seconds)


def insert_arguments(jobs: Sequence[NewJob]) -> tuple[list[Part], str]:
    """What `library/jobs/insert.lua` reads; and the script that has to store them if some are
    not like most: `insert_related` has children and jobs that have to start by a time,
    `insert_rated` also jobs with a rate.
    """
    arguments: list[Part] = []
    related = rated = False
    for job in jobs:
        key = job.key or ""
        # 0 means "not given" to the script.
        run_at = 0.0 if job.run_at is None else kept_time(job.run_at) or 1e-6
        flags = _HOLD if job.hold else 0
        body = Body(job.args, job.max_attempts, job.timeout, job.on_crash == "fail", job.meta)
        texts = f"{job.queue}\0{job.lane or ''}\0{job.task}\0{key}\0{job.source}"
        if job.parent is not None:
            flags, related = flags | _CHILD, True
            texts = f"{texts}\0{job.parent}\0{job.group or ''}"
        packed = _encode_body(body)
        if job.rate is not None:
            flags, rated = flags | _RATED, True
            packed = packed_rate(job, job.rate) + packed
        if job.expires_at is not None or job.expires_in is not None:
            flags, related = flags | _EXPIRES, True
            packed = _MOMENT.pack(_start_by(job)) + packed
        numbers = _NUMBERS.pack(job.width, flags, job.priority, run_at, kept_delay(job.delay))
        arguments += (
            job.id,
            numbers + texts.encode(),
            f"{job.task}\0{key}" if key else "",
            packed,
        )
    return arguments, "insert_rated" if rated else "insert_related" if related else ""


def _start_by(job: NewJob) -> float:
    """A time; or seconds from now, with a minus in front."""
    if job.expires_at is not None:
        return kept_time(job.expires_at) or 1e-6
    return -kept_delay(job.expires_in or 0.0)


def settlement_arguments(settlements: Sequence[Settlement]) -> tuple[list[Part], bool]:
    """What the script `exchange` reads; and whether that holds a lane, which is for
    `exchange_rated`.
    """
    arguments: list[Part] = []
    holds = False
    for settlement in settlements:
        delay: float = 0
        hold: float = 0
        word: Part
        data: Part = b""
        match settlement.outcome:
            case Completed(result=result):
                word, data = 4, result
            case Retry(failure=failure, delay=delay, hold_lane=hold):
                word, data, delay = "retry", _failure(failure), kept_delay(delay)
            case Failed(failure=failure, hold_lane=hold):
                word, data = 5, _failure(failure)
            case TimedOut(failure=failure):
                word, data = 6, _failure(failure)
            case Cancelled(reason=reason):
                word, data = 7, f"\0{storable(reason)}"
            case Released():
                word = "released"
            case Reserved(alone=alone):
                word = "reserved_alone" if alone else "reserved"
            case Snoozed(delay=delay, awaits=awaits, started=started):
                word, data = "snoozed" if started else "put_off", _awaited(awaits)
                delay = kept_delay(delay)
        arguments += (
            settlement.job_id,
            settlement.token,
            word,
            f"{delay!r} {kept_delay(hold)!r}" if hold else delay,
            data,
            settlement.entry or b"",
        )
        if hold:
            holds = True
    return arguments, holds


def follow_arguments(settlements: Sequence[Settlement]) -> tuple[list[Part], list[str], bool]:
    """Return what the script `follow` reads, jobs whose outcome or followers are impossible, and
    whether a lane is held or a follower has a rate, which is for `follow_rated`.
    """
    outcomes: list[Part] = []
    follow: list[Part] = []
    impossible: list[str] = []
    rated = False
    for each in settlements:
        try:
            outcome, holds = settlement_arguments([each])
            jobs, verb = insert_arguments(followers([each]))
        except (InvalidInput, ValueError, TypeError, OverflowError, struct.error):
            impossible.append(each.job_id)
            continue
        outcomes += outcome
        follow += (len(each.follow), *jobs)
        rated = rated or holds or verb == "insert_rated"
    return [len(settlements) - len(impossible), *outcomes, *follow], impossible, rated


def note_arguments(notes: Sequence[Note]) -> list[Part]:
    """What the script `note` reads."""
    arguments: list[Part] = []
    for note in notes:
        change = b""
        told = (_text(note.stage), _progress(note.progress), _text(note.message))
        if told != _NOTHING_TOLD:
            change = msgspec.msgpack.encode(told)
        arguments += (note.job_id, note.token, change, len(note.entries))
        for entry in note.entries:
            arguments += (storable(entry.kind), storable(entry.name), entry.body)
    return arguments


def read_record(record: bytes) -> StoredJob:
    """Take a record apart."""
    numbers: _Numbers = _RECORD.unpack_from(record)
    end = len(record) - numbers[9]
    texts = record[_RECORD.size : end].decode().split("\0")
    order, queue, lane, task, key, source = texts[:6] if numbers[1] & _CHILD else texts
    worker = record[end:].decode()
    found = StoredJob(*numbers[:9], 1000 - int(order[:4]), queue, lane, worker, task, key, source)
    if numbers[1] & _CHILD:
        found.parent, found.group = texts[6:]
    return found


def finished_at(place: bytes) -> float:
    """Return when a job ended, from its place in `finished`, where its id follows."""
    moment: float = _MOMENT.unpack_from(place)[0]
    return moment


def seen(answer: Sequence[bytes], *, brief: bool = False) -> list[Job]:
    """Jobs as people see them, from what the library `shown_jobs` answers."""
    return [_seen(answer[n : n + 10], brief) for n in range(0, len(answer), 10)]


def _seen(parts: Sequence[bytes], brief: bool) -> Job:
    job_id, packed, body_bytes, result, error, log, note, awaits, admitted, expires_at = parts
    record, body = read_record(packed), decode_body(body_bytes)
    state = State(record.state)
    completed = state is State.COMPLETED
    stage, progress, message = _decode_note(note) if note else _NOTHING_TOLD
    error_type, _, error_text = error.decode().partition("\0")
    return Job(
        id=job_id.decode(),
        task=record.task,
        queue=record.queue,
        state=state,
        args_json=body.args,
        priority=record.priority,
        lane=record.lane or None,
        width=record.width,
        hold=bool(record.flags & _HOLD),
        key=record.key or None,
        source=record.source,
        attempt=record.attempt,
        max_attempts=body.max_attempts,
        token=record.token,
        timeout=body.timeout,
        on_crash="fail" if body.fails_on_crash else "retry",
        stage=None if stage is False else stage,
        progress=100.0 if completed else float(progress),
        message=None if message is False or (completed and progress < 100) else message,
        created_at=at(record.created),
        run_at=at(record.run_at),
        admitted_at=at(_MOMENT.unpack(admitted)[0]) if admitted else None,
        started_at=at(record.started) if record.started else None,
        completed_at=at(record.completed) if record.completed > 0 else None,
        worker=record.worker_name,
        error_type=error_type if error and state is not State.CANCELLED else None,
        error=error_text if error else None,
        result_json=(result or b"null") if completed and not brief else None,
        cancel_requested=bool(record.flags & ASKED),
        meta_json=body.meta,
        log=log,
        parent=record.parent or None,
        group=record.group or None,
        awaits=decode_awaited(awaits),
        expires_at=at(float(expires_at)) if expires_at else None,
        parked=state is State.SCHEDULED and record.flags & _PARKED == _PARKED,
    )


def _failure(failure: Failure) -> str:
    return f"{storable(failure.type)}\0{storable(failure.message)}"


def _awaited(awaits: tuple[Awaited, ...]) -> bytes:
    """What a job awaits; events by the names under which they are kept."""
    if not awaits:
        return b""
    kept = (
        AwaitedEvent(storable(each.name)) if isinstance(each, AwaitedEvent) else each
        for each in awaits
    )
    return encode_awaited(tuple(kept)) or b""


def _text(text: str | None) -> str | Literal[False]:
    return False if text is None else storable(text)


def _progress(progress: float | None) -> float | Literal[False]:
    """Progress, if it is a number."""
    return False if progress is None or math.isnan(progress) else float(progress)
