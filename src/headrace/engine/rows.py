"""Rows of SQL databases as jobs of the model: one order of columns for SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.model.job import ClaimedJob
from headrace.model.status import State

STATES = {int(state): state for state in State}
# The fields of `Job` in the order of the columns of views and statements, not in that of the
# class, which is that of the API.
JOB_FIELDS = (
    *("id", "task", "queue", "state", "args_json", "priority", "lane", "width", "hold", "key"),
    *("source", "attempt", "max_attempts", "token", "timeout", "on_crash", "stage", "progress"),
    *("message", "created_at", "run_at", "started_at", "completed_at", "worker", "error_type"),
    *("error", "result_json", "cancel_requested", "meta_json", "log", "parent", "group", "awaits"),
    "admitted_at",
    "expires_at",
)


def claimed(row: Sequence[Any], *, cancel_requested: bool = False) -> ClaimedJob:
    """Return the job of a row that has the fields of `ClaimedJob` in their order, with whether it
    fails on a crash instead of `on_crash`, and anything instead of `cancel_requested`.
    """
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
        # Few have one. With more than 15 keywords Python makes a dictionary of them, which takes
        # three times as long as all the rest.
        job.parent = str(row[15])
    return job
