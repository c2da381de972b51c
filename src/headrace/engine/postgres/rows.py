"""From rows to the values of the contract."""

from __future__ import annotations

from typing import Any

from headrace.engine.rows import JOB_FIELDS, STATES, claimed
from headrace.model.durable.awaited import decode_awaited
from headrace.model.job import Job
from headrace.model.views import LaneView, LostJob, QueueView, Record
from headrace.model.worker import Worker

# An asyncpg Record. Claimed jobs are read by position, because names cost a lookup each.
Row = Any

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


def lost(row: Row) -> LostJob:
    """Return the job of a row of `lost`."""
    return LostJob(
        job=claimed(row, cancel_requested=row["cancel_requested"]),
        worker=row["worker"],
        started_at=row["started_at"],
        age=row["age"],
    )


def job(row: Row) -> Job:
    """Return the job of a row with the columns of fragments/shown_job.sql."""
    # There may be other columns behind them.
    values = dict(zip(JOB_FIELDS, row, strict=False))
    values["id"] = str(values["id"])
    values["state"] = STATES[values["state"]]
    values["awaits"] = decode_awaited(values["awaits"])
    parent = values["parent"]
    values["parent"] = None if parent is None else str(parent)
    values["expires_at"] = row["expires_at"]
    values["parked"] = row["parked"]
    return Job(**values)


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
