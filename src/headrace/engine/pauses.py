"""Pauses of queues with who, why and until when: a record beside what the engine itself keeps.

The record is written before the queue is paused or resumed, and whoever does so looks at it again
afterwards. So when several do it at once, the queue ends as the record says.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

from headrace.engine.base import Engine, Records
from headrace.engine.bounded_reads import records_of
from headrace.errors import RecordConflict
from headrace.model.times import moment_of
from headrace.model.views import QueueView, Record

KIND = "pause"
# Records of pauses that are over stay for so long, so that versions keep growing while somebody
# may still act on an earlier one. Also those that a program of an earlier version has resumed.
KEPT_SECONDS = 600.0

T = TypeVar("T")
Q = TypeVar("Q", bound=Sequence[QueueView])


class Pause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who paused a queue, when, why, and until when. "ending": its time has passed, and an upkeep
    resumes the queue.
    """

    at: datetime
    by: str | None = None
    reason: str | None = None
    until: datetime | None = None
    state: Literal["paused", "ending", "ended"] = "paused"


async def pause(engine: Engine, queue: str, pause: Pause) -> None:
    """Pause a queue, or give its pause another reason and end."""
    await engine.record_put(KIND, queue, msgspec.json.encode(pause))
    await _as_recorded(engine, queue)


async def resume(engine: Engine, queue: str, now: datetime) -> None:
    """Resume a queue, whoever paused it."""
    await engine.record_put(KIND, queue, msgspec.json.encode(Pause(at=now, state="ended")))
    await _as_recorded(engine, queue)


async def described(engine: Records, queues: Q) -> Q:
    """Fill in who paused these queues, and why, as far as it is known."""
    if any(queue.paused for queue in queues):
        pauses = {record.key: _read(record) for record in await records_of(engine, KIND)}
        for queue in queues:
            known = pauses.get(queue.name)
            if queue.paused and known is not None and known.state != "ended":
                queue.paused_by, queue.paused_at = known.by, known.at
                queue.paused_reason, queue.paused_until = known.reason, known.until
    return queues


async def end_pauses(engine: Engine) -> list[str]:
    """Resume the queues whose pause has ended, and return them. Any number of processes may do so
    at once; a pause that is renewed meanwhile goes on.
    """
    records = await records_of(engine, KIND)
    if not records:
        return []
    now = moment_of(await engine.now())
    paused = {queue.name for queue in await engine.queues() if queue.paused}
    resumed = []
    for record in records:
        known = _read(record)
        if known is None:
            continue
        over = known.until is not None and known.until <= now
        if known.state == "ending" or (known.state == "paused" and over):
            resumed += await _end(engine, record, known)
        elif known.state == "paused" and record.key in paused:
            continue
        elif (now - record.updated_at).total_seconds() > KEPT_SECONDS:
            await _guarded(engine.record_delete(KIND, record.key, version=record.version))
    return resumed


async def _end(engine: Engine, record: Record, known: Pause) -> list[str]:
    # In two steps: if this process dies between them, another goes on.
    ending = msgspec.json.encode(msgspec.structs.replace(known, state="ending"))
    queue = record.key
    marked = await _guarded(engine.record_put(KIND, queue, ending, version=record.version))
    if marked is None:
        return []  # renewed, or another process is at it
    await _as_recorded(engine, queue)
    ended = msgspec.json.encode(msgspec.structs.replace(known, state="ended"))
    done = await _guarded(engine.record_put(KIND, queue, ended, version=marked.version))
    return [] if done is None else [queue]


async def _guarded(change: Coroutine[Any, Any, T]) -> T | None:
    """Make a change unless somebody else was faster."""
    try:
        return await change
    except RecordConflict:
        return None


async def _as_recorded(engine: Engine, queue: str) -> None:
    """Pause or resume a queue as its record says, and look again until that has not changed."""
    version = -1
    while True:
        record = await engine.record_get(KIND, queue)
        found = 0 if record is None else record.version
        if found == version:
            return
        version = found
        known = None if record is None else _read(record)
        await engine.pause(queue, known is not None and known.state == "paused")


def _read(record: Record) -> Pause | None:
    try:
        return msgspec.json.decode(record.body, type=Pause)
    except msgspec.DecodeError:
        return None  # of a version that is not known here
