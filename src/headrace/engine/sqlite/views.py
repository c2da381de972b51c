"""What people see. Every function here only reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import id_list, job
from headrace.engine.sqlite.sql import sql
from headrace.model.job import Job
from headrace.model.views import LaneView, QueueView


def get(transaction: Transaction, ids: Sequence[str], *, brief: bool = False) -> list[Job]:
    """The jobs with these ids, in that order."""
    asked = (id_list(list(dict.fromkeys(ids))),)
    unfinished = sql.get_unfinished_brief if brief else sql.get_unfinished
    finished = sql.get_finished_brief if brief else sql.get_finished
    rows = transaction.connection.execute(unfinished, asked).fetchall()
    rows += transaction.connection.execute(finished, asked).fetchall()
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
    rows = connection.execute(sql.lanes, (queue, queue, lane, lane, limit)).fetchall()
    places = msgspec.json.encode([row[:2] for row in rows]).decode()
    holders: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, of, job_id in connection.execute(sql.lane_holders, (places, places, places)):
        holders[name, of].append(job_id)
    return [
        LaneView(
            queue=row[0],
            lane=row[1],
            width=row[2],
            used=row[3],
            waiting=row[4],
            holders=tuple(holders[row[0], row[1]]),
            oldest_age=None if row[5] is None else max(now - row[5], 0.0),
        )
        for row in rows
    ]
