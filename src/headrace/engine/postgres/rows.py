"""From rows to the values of the contract."""

from __future__ import annotations

from typing import Any

from headrace.engine.text import storable
from headrace.model.durable.awaited import decode_awaited
from headrace.model.job import ClaimedJob, Job, LostJob
from headrace.model.status import State
from headrace.model.views import LaneView, QueueView, Record
from headrace.model.worker import Worker

# An asyncpg Record. Claimed jobs are read by position, because names cost a lookup each.
Row = Any

_STATES = {int(state): state for state in State}


def storable_or_none(text: str | None) -> str | None:
    """Text with what a store cannot keep replaced, if there is one."""
    return None if text is None else storable(text)


def _id_or_none(value: object) -> str | None:
    return None if value is None else str(value)


# The columns of a claimed job in `exchange`, `held` and `lost`, which are read by position. In the
# place of `seq` the latter two have whether its cancel was requested.
CLAIMED = (
    *("id", "token", "attempt", "task", "queue", "args", "max_attempts", "timeout"),
    *("fail_on_crash", "priority", "lane", "key", "meta", "wait", "seq", "parent"),
)
PRIORITY, LANE, SEQ = (CLAIMED.index(name) for name in ("priority", "lane", "seq"))


def start_order(row: Row) -> tuple[int, int]:
    """Return the key to sort claimed jobs by: priority, then arrival."""
    return -row[PRIORITY], row[SEQ]


def claimed(row: Row, *, cancel_requested: bool = False) -> ClaimedJob:
    """Return the job of a row with the columns `CLAIMED`."""
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
    """Return the job of a row of `lost`."""
    return LostJob(
        job=claimed(row, cancel_requested=row["cancel_requested"]),
        worker=row["worker"],
        started_at=row["started_at"],
        age=row["age"],
    )


def job(row: Row) -> Job:
    """Return the job of a row of the view `every_job`."""
    return Job(
        id=str(row["id"]),
        task=row["task"],
        queue=row["queue"],
        state=_STATES[row["state"]],
        args_json=row["args"],
        priority=row["priority"],
        lane=row["lane"],
        width=row["width"],
        hold=row["hold"],
        key=row["key"],
        source=row["source"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        token=row["token"],
        timeout=row["timeout"],
        on_crash="fail" if row["fail_on_crash"] else "retry",
        stage=row["stage"],
        progress=row["progress"],
        message=row["message"],
        created_at=row["created_at"],
        run_at=row["run_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        worker=row["worker"],
        error_type=row["error_type"],
        error=row["error"],
        result_json=row["result"],
        cancel_requested=row["cancel_reason"] is not None,
        meta_json=row["meta"],
        log=row["log"] or b"",
        parent=_id_or_none(row["parent"]),
        group=row["child_group"],
        awaits=decode_awaited(row["awaits"]),
    )


def queue(row: Row) -> QueueView:
    """Return the view of a row of `queues`."""
    tasks, amounts = row["tasks"], row["amounts"]
    return QueueView(
        name=row["name"],
        paused=row["paused"],
        scheduled=row["scheduled"],
        waiting=row["waiting"],
        ready=row["ready"],
        running=row["running"],
        oldest_age=row["oldest_age"],
        reserved={} if tasks is None else dict(zip(tasks, amounts, strict=True)),
    )


def lane(row: Row) -> LaneView:
    """Return the view of a row of `lanes`."""
    return LaneView(**{**row, "holders": tuple(row["holders"] or ())})


def worker(row: Row) -> Worker:
    """Return the worker of a row of `workers`."""
    tasks = None if row["tasks"] is None else tuple(row["tasks"])
    return Worker(**{**row, "queues": tuple(row["queues"]), "tasks": tasks})


def record(row: Row) -> Record:
    """Return the record of a row of the statements on records."""
    return Record(**row)
