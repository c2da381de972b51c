"""What people see. Every function here only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import id_list, job
from headrace.engine.sqlite.sql import query
from headrace.engine.text import checked_cursor
from headrace.model.job import Job, JobFilter
from headrace.model.status import STATES, State, Status
from headrace.model.views import JobPage, LaneView, QueueView

GET_UNFINISHED = query("get_unfinished")
GET_FINISHED = query("get_finished")
LIST_UNFINISHED = query("list_unfinished")
LIST_RUNNING = query("list_running")
LIST_FINISHED = query("list_finished")
LIST_UNSUCCESSFUL = query("list_unsuccessful")
LIST_UNFINISHED_KEYED = query("list_unfinished_keyed")
LIST_FINISHED_KEYED = query("list_finished_keyed")
LIST_UNFINISHED_CHILDREN = query("list_unfinished_children")
LIST_FINISHED_CHILDREN = query("list_finished_children")
QUEUE_NAMES = query("queue_names")
QUEUE_READY = query("queue_ready")
QUEUE_RESERVED = query("queue_reserved")
QUEUE_WAITING = query("queue_waiting")
QUEUE_RUNNING = query("queue_running")
QUEUE_SCHEDULED = query("queue_scheduled")
LANES = query("lanes")
LANE_HOLDERS = query("lane_holders")

# Above every id: ids are hexadecimal.
AFTER_EVERY_ID = "~"


def get(transaction: Transaction, ids: Sequence[str]) -> list[Job]:
    """The jobs with these ids, in that order."""
    asked = (id_list(list(dict.fromkeys(ids))),)
    rows = transaction.connection.execute(GET_UNFINISHED, asked).fetchall()
    rows += transaction.connection.execute(GET_FINISHED, asked).fetchall()
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
    for statement in (GET_UNFINISHED, GET_FINISHED):
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
        yield LIST_UNFINISHED_KEYED, unfinished
        yield LIST_FINISHED_KEYED, finished
        return
    if filter.parent is not None:
        yield LIST_UNFINISHED_CHILDREN, unfinished
        yield LIST_FINISHED_CHILDREN, finished
        return
    if unfinished == [State.RUNNING]:
        yield LIST_RUNNING, unfinished
    elif unfinished:
        yield LIST_UNFINISHED, unfinished
    if State.COMPLETED in finished:
        yield LIST_FINISHED, finished
    else:
        for state in finished:
            yield LIST_UNSUCCESSFUL, [state]


def _array(values: Sequence[Any]) -> str | None:
    return msgspec.json.encode(values).decode() if values else None


def queues(transaction: Transaction) -> list[QueueView]:
    """Every queue with its depth."""
    connection, now = transaction.connection, transaction.now
    views = {
        name: QueueView(name=name, paused=bool(paused))
        for name, paused in connection.execute(QUEUE_NAMES)
    }

    def view(name: str) -> QueueView:
        return views.setdefault(name, QueueView(name=name, paused=False))

    oldest: dict[str, float] = {}
    for name, count, since in connection.execute(QUEUE_READY):
        view(name).ready = count
        oldest[name] = since
    for name, task, count, since in connection.execute(QUEUE_RESERVED):
        view(name).ready += count
        view(name).reserved[task] = count
        oldest[name] = min(since, oldest.get(name, since))
    for name, count, since in connection.execute(QUEUE_WAITING):
        view(name).waiting = count
        oldest[name] = min(since, oldest.get(name, since))
    for name, count in connection.execute(QUEUE_RUNNING):
        view(name).running = count
    for name, count in connection.execute(QUEUE_SCHEDULED):
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
                job_id for (job_id,) in connection.execute(LANE_HOLDERS, (row[0], row[1]))
            ),
            oldest_age=None if row[5] is None else max(now - row[5], 0.0),
        )
        for row in connection.execute(LANES, (queue, lane, limit)).fetchall()
    ]
