"""From rows to what the contract answers, and from values to what a server can store."""

from __future__ import annotations

from typing import Any

from headrace.engine.text import storable
from headrace.model.durable.awaited import decode_awaited
from headrace.model.job import ClaimedJob, Job, LostJob
from headrace.model.status import State
from headrace.model.views import LaneView, QueueView, Record
from headrace.model.worker import Worker

# asyncpg's Record: read by position, because names cost a lookup each.
Row = Any

_STATES = {int(state): state for state in State}


def storable_or_none(text: str | None) -> str | None:
    """Text with what a store cannot keep replaced, if there is one."""
    return None if text is None else storable(text)


def _id_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def start_order(row: Row) -> tuple[int, int]:
    """By priority, then arrival: the key to sort rows of exchange.sql by."""
    return -row[9], row[14]


def claimed(row: Row, *, cancel_requested: bool = False) -> ClaimedJob:
    """A row of exchange.sql, held.sql or lost.sql."""
    job = ClaimedJob(
        id=str(row[0]),
        token=row[1],
        attempt=row[2],
        task=row[3],
        queue=row[4],
        args=row[5],
        max_attempts=row[6],
        timeout=row[7],
        on_crash="fail" if row[8] else "retry",
        priority=row[9],
        lane=row[10],
        key=row[11],
        meta=row[12],
        wait=row[13],
        cancel_requested=cancel_requested,
    )
    if row[15] is not None:
        # Few have one, and a call with one more keyword takes Python three times as long.
        job.parent = str(row[15])
    return job


def lost(row: Row) -> LostJob:
    """A row of lost.sql."""
    return LostJob(
        job=claimed(row, cancel_requested=row[14]), worker=row[16], started_at=row[17], age=row[18]
    )


def job(row: Row) -> Job:
    """A row of the view `every_job`."""
    return Job(
        id=str(row[0]),
        task=row[1],
        queue=row[2],
        state=_STATES[row[3]],
        args_json=row[4],
        priority=row[5],
        lane=row[6],
        width=row[7],
        hold=row[8],
        key=row[9],
        source=row[10],
        attempt=row[11],
        max_attempts=row[12],
        token=row[13],
        timeout=row[14],
        on_crash="fail" if row[15] else "retry",
        stage=row[16],
        progress=row[17],
        message=row[18],
        created_at=row[19],
        run_at=row[20],
        started_at=row[21],
        completed_at=row[22],
        worker=row[23],
        error_type=row[24],
        error=row[25],
        result_json=row[26],
        cancel_requested=row[27] is not None,
        meta_json=row[28],
        log=row[29] or b"",
        parent=_id_or_none(row[30]),
        group=row[31],
        awaits=decode_awaited(row[32]),
    )


def queue(row: Row) -> QueueView:
    """A row of queues.sql."""
    return QueueView(
        name=row[0],
        paused=row[1],
        scheduled=row[2],
        waiting=row[3],
        ready=row[4],
        running=row[5],
        oldest_age=row[6],
        reserved={} if row[7] is None else dict(zip(row[7], row[8], strict=True)),
    )


def lane(row: Row) -> LaneView:
    """A row of lanes.sql."""
    return LaneView(
        queue=row[0],
        lane=row[1],
        width=row[2],
        used=row[3],
        waiting=row[4],
        holders=tuple(row[5] or ()),
        oldest_age=row[6],
    )


def worker(row: Row) -> Worker:
    """A row of workers.sql."""
    return Worker(
        id=row[0],
        name=row[1],
        host=row[2],
        pid=row[3],
        version=row[4],
        queues=tuple(row[5]),
        slots=row[6],
        running=row[7],
        memory_bytes=row[8],
        cpu_percent=row[9],
        healthy=row[10],
        alive=row[11],
        started_at=row[12],
        heartbeat_at=row[13],
        lease_until=row[14],
        tasks=None if row[15] is None else tuple(row[15]),
        schema_version=row[16],
    )


def record(row: Row) -> Record:
    """A row of the record queries."""
    return Record(kind=row[0], key=row[1], version=row[2], body=row[3], updated_at=row[4])
