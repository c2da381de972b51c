"""From rows to what the contract answers."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace.engine.rows import JOB_FIELDS, STATES
from headrace.engine.sqlite.sql import sql
from headrace.model.durable.awaited import decode_awaited
from headrace.model.job import ClaimedJob, Job, OnCrash
from headrace.model.times import EARLIEST, LATEST, moment_of
from headrace.model.worker import Worker

Row = tuple[Any, ...]
FIELDS = (*JOB_FIELDS, "parked")
TIMES = ("created_at", "run_at", "started_at", "completed_at", "admitted_at", "expires_at")


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as an aware datetime."""
    if EARLIEST <= seconds <= LATEST:
        return datetime.fromtimestamp(seconds, UTC)
    return moment_of(seconds)


def id_list(ids: list[str] | tuple[str, ...]) -> str:
    """Ids as the JSON array that a statement reads with json_each."""
    return msgspec.json.encode(ids).decode()


def job(row: Row) -> Job:
    """Return the job of a row of the views `unfinished_job` and `finished_job`."""
    values = dict(zip(FIELDS, row, strict=False))
    values["state"] = STATES[values["state"]]
    values["awaits"] = decode_awaited(values["awaits"]) if values["awaits"] else ()
    for name in TIMES:
        if values[name] is not None:
            values[name] = moment(values[name])
    for name in ("hold", "cancel_requested", "parked"):
        values[name] = bool(values[name])
    return Job(**values)


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
        # Few have these; see `claimed` in headrace.engine.rows.
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
