"""What people see. Every function here only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import id_list, job
from headrace.engine.sqlite.sql import sql
from headrace.engine.text import checked_cursor
from headrace.model.job import Job, JobFilter
from headrace.model.status import STATES, State, Status
from headrace.model.views import JobPage, LaneView, QueueView

# Above every id: ids are hexadecimal.
AFTER_EVERY_ID = "~"


def get(transaction: Transaction, ids: Sequence[str]) -> list[Job]:
    """The jobs with these ids, in that order."""
    asked = (id_list(list(dict.fromkeys(ids))),)
    rows = transaction.connection.execute(sql.get_unfinished, asked).fetchall()
    rows += transaction.connection.execute(sql.get_finished, asked).fetchall()
    found = {row[0]: job(row) for row in rows}
    return [found[job_id] for job_id in ids if job_id in found]


def get_part(
    transaction: Transaction, ids: Sequence[str], most_bytes: int
) -> tuple[list[Job], list[str]]:
    """Some of these jobs, and the ids that are yet to be asked for. Rows are read one by one, in
    the order of the ids, so nothing is read that is not answered, but the last.
    """
    asked = list(dict.fromkeys(ids))
    found: dict[str, Job] = {}
    left = most_bytes
    for statement in (sql.get_unfinished, sql.get_finished):
        for row in transaction.connection.execute(statement, (id_list(asked),)):
            one = job(row)
            left -= len(one.args_json) + len(one.result_json or b"")
            if left < 0 and found:
                return list(found.values()), [each for each in asked if each not in found]
            found[one.id] = one
    return list(found.values()), []


def list_jobs(
    transaction: Transaction, filter: JobFilter, *, cursor: str | None = None, limit: int = 50
) -> JobPage:
    """A page of jobs by descending id."""
    states = {state for status in filter.statuses or tuple(Status) for state in STATES[status]}
    values: dict[str, Any] = {
        "cursor": checked_cursor(cursor) or AFTER_EVERY_ID,
        "queues": _array(filter.queues),
        "tasks": _array(filter.tasks),
        "lane": filter.lane,
        "key": filter.key,
        "source": filter.source,
        "parent": filter.parent,
        "group": filter.group,
        "created_after": filter.created_after and filter.created_after.timestamp(),
        "created_before": filter.created_before and filter.created_before.timestamp(),
        # One more than asked for tells whether there is a next page.
        "limit": limit + 1,
    }
    rows = [
        row
        for statement, wanted in _statements(states, filter)
        for row in transaction.connection.execute(statement, values | {"states": _array(wanted)})
    ]
    rows.sort(key=lambda row: row[0], reverse=True)
    more = len(rows) > limit
    jobs = [job(row) for row in rows[:limit]]
    return JobPage(jobs, jobs[-1].id if more and jobs else None)


def _statements(states: set[State], filter: JobFilter) -> Iterator[tuple[str, list[State]]]:
    """The statements that find jobs in these states by the shortest way, and what each is for."""
    unfinished = sorted(state for state in states if state <= State.RUNNING)
    finished = sorted(state for state in states if state > State.RUNNING)
    if filter.key is not None:
        yield sql.list_unfinished_keyed, unfinished
        yield sql.list_finished_keyed, finished
        return
    if filter.parent is not None:
        yield sql.list_unfinished_children, unfinished
        yield sql.list_finished_children, finished
        return
    if unfinished == [State.RUNNING]:
        yield sql.list_running, unfinished
    elif unfinished:
        yield sql.list_unfinished, unfinished
    if State.COMPLETED in finished:
        yield sql.list_finished, finished
    else:
        for state in finished:
            yield sql.list_unsuccessful, [state]


def _array(values: Sequence[Any]) -> str | None:
    return msgspec.json.encode(values).decode() if values else None


def queues(transaction: Transaction) -> list[QueueView]:
    """Every queue with its depth."""
    connection, now = transaction.connection, transaction.now
    views = {
        name: QueueView(name=name, paused=bool(paused))
        for name, paused in connection.execute(sql.queue_names)
    }

    def view(name: str) -> QueueView:
        return views.setdefault(name, QueueView(name=name, paused=False))

    oldest: dict[str, float] = {}
    for name, count, since in connection.execute(sql.queue_ready):
        view(name).ready = count
        oldest[name] = since
    for name, task, count, since in connection.execute(sql.queue_reserved):
        view(name).ready += count
        view(name).reserved[task] = count
        oldest[name] = min(since, oldest.get(name, since))
    for name, count, since in connection.execute(sql.queue_waiting):
        view(name).waiting = count
        oldest[name] = min(since, oldest.get(name, since))
    for name, count in connection.execute(sql.queue_running):
        view(name).running = count
    for name, count in connection.execute(sql.queue_scheduled):
        view(name).scheduled = count
    for name, since in oldest.items():
        view(name).oldest_age = max(now - since, 0.0)
    return [views[name] for name in sorted(views)]


def lanes(
    transaction: Transaction,
    *,
    queue: str | None = None,
    lane: str | None = None,
    limit: int = 100,
) -> list[LaneView]:
    """Lanes with holders or waiting jobs."""
    connection, now = transaction.connection, transaction.now
    return [
        LaneView(
            queue=row[0],
            lane=row[1],
            width=row[2],
            used=row[3],
            waiting=row[4],
            holders=tuple(
                job_id for (job_id,) in connection.execute(sql.lane_holders, (row[0], row[1]))
            ),
            oldest_age=None if row[5] is None else max(now - row[5], 0.0),
        )
        for row in connection.execute(sql.lanes, (queue, lane, limit)).fetchall()
    ]
