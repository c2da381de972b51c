"""From rows to what the contract answers."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace.engine.sqlite.sql import sql
from headrace.model.durable.awaited import decode_awaited
from headrace.model.job import ClaimedJob, Job, OnCrash
from headrace.model.status import State
from headrace.model.times import EARLIEST, LATEST, moment_of
from headrace.model.worker import Worker

Row = tuple[Any, ...]

_STATES = {int(state): state for state in State}


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as an aware datetime."""
    if EARLIEST <= seconds <= LATEST:
        return datetime.fromtimestamp(seconds, UTC)
    return moment_of(seconds)


def moment_or_none(seconds: float | None) -> datetime | None:
    """The same for a time that may be missing."""
    return None if seconds is None else moment(seconds)


def id_list(ids: list[str] | tuple[str, ...]) -> str:
    """Ids as the JSON array that a statement reads with json_each."""
    return msgspec.json.encode(ids).decode()


def job(row: Row) -> Job:
    """A row of the views `unfinished_job` and `finished_job`."""
    return Job(
        id=row[0],
        task=row[1],
        queue=row[2],
        state=_STATES[row[3]],
        args_json=row[4],
        priority=row[5],
        lane=row[6],
        width=row[7],
        hold=bool(row[8]),
        key=row[9],
        source=row[10],
        attempt=row[11],
        max_attempts=row[12],
        token=row[13],
        timeout=row[14],
        on_crash=row[15],
        stage=row[16],
        progress=row[17],
        message=row[18],
        created_at=moment(row[19]),
        run_at=moment(row[20]),
        started_at=moment_or_none(row[21]),
        completed_at=moment_or_none(row[22]),
        worker=row[23],
        error_type=row[24],
        error=row[25],
        result_json=row[26],
        cancel_requested=bool(row[27]),
        meta_json=row[28],
        log=row[29],
        parent=row[30],
        group=row[31],
        awaits=decode_awaited(row[32]) if row[32] else (),
    )


def claimed(row: Row) -> ClaimedJob:
    """A row of held.sql or lost.sql; what follows the first 16 columns is theirs."""
    job = ClaimedJob(
        id=row[0],
        token=row[1],
        attempt=row[2],
        task=row[3],
        queue=row[4],
        args=row[5],
        max_attempts=row[6],
        timeout=row[7],
        on_crash=row[8],
        priority=row[9],
        lane=row[10],
        key=row[11],
        meta=row[12],
        wait=row[13],
        cancel_requested=row[14] is not None,
    )
    if row[15] is not None:
        # Not above: with more than 15 keywords Python makes a dictionary of them, at the cost of
        # all the rest together.
        job.parent = row[15]
    return job


class Claimable(msgspec.Struct, array_like=True, gc=False):
    """A job as claimable.sql answers it."""

    id: str
    token: int
    attempt: int
    task: str
    queue: str
    args: str | None
    max_attempts: int
    timeout: float | None
    on_crash: OnCrash
    priority: int
    lane: str | None
    key: str | None
    meta: str | None
    wait: float
    cancel_reason: str | None
    parent: str | None
    seq: int

    def place(self) -> tuple[int, int]:
        """By priority, then arrival: the key to sort them by."""
        return -self.priority, self.seq

    def claimed(self) -> ClaimedJob:
        """As a worker needs it."""
        job = ClaimedJob(
            id=self.id,
            token=self.token,
            attempt=self.attempt,
            task=self.task,
            queue=self.queue,
            args=b"" if self.args is None else self.args.encode(),
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            on_crash=self.on_crash,
            priority=self.priority,
            lane=self.lane,
            key=self.key,
            wait=self.wait,
        )
        # Few have these; see `claimed`.
        if self.meta is not None:
            job.meta = self.meta.encode()
        if self.cancel_reason is not None:
            job.cancel_requested = True
        if self.parent is not None:
            job.parent = self.parent
        return job


decode_claimable = msgspec.json.Decoder(list[Claimable]).decode


def worker(row: Row, now: float) -> Worker:
    """A row of workers.sql."""
    return Worker(
        id=row[0],
        name=row[1],
        host=row[2],
        pid=row[3],
        version=row[4],
        queues=msgspec.json.decode(row[5], type=tuple[str, ...]),
        slots=row[6],
        running=row[7],
        memory_bytes=row[8],
        cpu_percent=row[9],
        healthy=bool(row[10]),
        started_at=moment(row[11]),
        heartbeat_at=moment(row[12]),
        lease_until=moment(row[13]),
        alive=row[14] is None and row[13] > now,
        tasks=None if row[15] is None else msgspec.json.decode(row[15], type=tuple[str, ...]),
        schema_version=row[16],
    )


def next_arrivals(connection: sqlite3.Connection, count: int) -> int:
    """Take `count` numbers of arrival; answers the first of them."""
    [(last,)] = connection.execute(sql.arrive, (count,)).fetchall()
    return int(last) - count + 1
