"""Taking jobs in."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

from headrace.engine.sqlite import lanes, records
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rates import keys
from headrace.engine.sqlite.rows import id_list, next_arrivals
from headrace.engine.sqlite.sql import sql
from headrace.model.job import Inserted, NewJob
from headrace.model.times import kept_delay, kept_time
from headrace.model.views import RecordChange

SCHEDULED, WAITING, READY = 0, 1, 2
# As in the statement queue_seen. Much shorter than a queue is kept, so none is forgotten meanwhile.
MARKED_SECONDS = 3_600.0
# As many jobs as the statement insert_sixteen stores.
TOGETHER = 16


def insert(
    transaction: Transaction,
    jobs: Sequence[NewJob],
    *,
    record: RecordChange | None = None,
    wait: bool = True,
) -> list[Inserted]:
    """Store jobs in this order; one whose key or id exists is not stored again. No key is ever in
    doubt here, so there is nothing to `wait` for.
    """
    if record is not None:
        records.put(transaction, record.kind, record.key, record.body, version=record.version)
    if not jobs:
        return []
    connection = transaction.connection
    ids = id_list([job.id for job in jobs])
    known = {job_id: job_id for (job_id,) in connection.execute(sql.known_ids, (ids,))}
    answers: list[Inserted] = []
    fresh: list[NewJob] = []
    for job in jobs:
        if job.id in known:
            answers.append(Inserted(known[job.id], False))
            continue
        if job.key is not None and not _take_key(transaction, job):
            [(owner,)] = connection.execute(sql.key_owner, (job.key, job.task)).fetchall()
            known[job.id] = owner
            answers.append(Inserted(owner, False))
            continue
        known[job.id] = job.id
        fresh.append(job)
        answers.append(Inserted(job.id, True))
    if fresh:
        store(transaction, fresh)
    return answers


def _take_key(transaction: Transaction, job: NewJob) -> bool:
    cursor = transaction.connection.execute(sql.key_take, (job.key, job.task, job.id))
    return cursor.rowcount == 1


def _mark_used(transaction: Transaction, names: set[str]) -> None:
    """Record that jobs have come into these queues, unless that was done within the hour."""
    now, lately = transaction.now, transaction.used_lately
    unknown = [
        (name, now)
        for name in names
        if name not in lately or abs(now - lately[name]) > MARKED_SECONDS
    ]
    if unknown:
        transaction.connection.executemany(sql.queue_seen, unknown)
        transaction.used |= names


def store(transaction: Transaction, jobs: list[NewJob]) -> None:
    """Store jobs whose ids and keys are free."""
    connection, now = transaction.connection, transaction.now
    _mark_used(transaction, {job.queue for job in jobs})
    seq = next_arrivals(connection, len(jobs))
    rows: list[tuple[Any, ...]] = []
    children: list[tuple[Any, ...]] = []
    expiring: list[tuple[int, float, float]] = []
    rated: list[tuple[int, NewJob]] = []
    arrivals: lanes.LaneArrivals | None = None
    for job in jobs:
        run_at = due_time(now, job)
        if run_at > now:
            state = SCHEDULED
        elif job.lane is None:
            state = READY
            transaction.made_ready.add(job.queue)
        else:
            # Begins as waiting; it is let in after all of this call are stored.
            state = WAITING
            arrivals = arrivals or lanes.LaneArrivals()
            arrivals.add((job.queue, job.lane), job.width, seq, new=True)
        # Python's sqlite3 looks for adapters of None, bool and bytes, at the cost of all the rest:
        # so "" for None (the statement turns it back), 1 for True, and a bytearray.
        row = (
            seq,
            job.id,
            state,
            job.priority,
            job.queue,
            job.lane or "",
            job.width,
            1 if job.hold else 0,
            run_at,
            now,
            job.task,
            job.key or "",
            job.max_attempts,
            job.timeout,
            job.on_crash,
            job.source,
            bytearray(job.args),
            job.meta or "",
        )
        if job.parent is None:
            rows.append(row)
        else:
            children.append((*row, job.parent, job.group))
        if job.expires_in is not None or job.expires_at is not None:
            at = expiry_time(now, job)
            expiring.append((seq, at, at))
        if job.rate is not None:
            rated.append((seq, job))
        seq += 1
    store_rows(connection, rows)
    if children:
        connection.executemany(sql.insert_child, children)
    if expiring:
        connection.executemany(sql.expiry_set, expiring)
    if rated:
        keys.keep(transaction, rated)
    if arrivals is not None:
        arrivals.admit(transaction)


def store_rows(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Store rows as the statement insert has them, sixteen with one statement while there are."""
    together = len(rows) - len(rows) % TOGETHER
    if together:
        sixteens = (rows[first : first + TOGETHER] for first in range(0, together, TOGETHER))
        connection.executemany(
            sql.insert_sixteen, [tuple(chain.from_iterable(each)) for each in sixteens]
        )
    connection.executemany(sql.insert, rows[together:])


def due_time(now: float, job: NewJob) -> float:
    """When a new job may run."""
    if job.run_at is not None:
        return kept_time(job.run_at)
    return now + kept_delay(job.delay) if job.delay else now


def expiry_time(now: float, job: NewJob) -> float:
    """By when a new job that has such a time has to start."""
    if job.expires_at is not None:
        return kept_time(job.expires_at)
    return now + kept_delay(job.expires_in or 0.0)
