"""Deleting what finished long ago, and what nobody uses any more."""

from __future__ import annotations

import math
import random
import sqlite3

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import id_list
from headrace.engine.sqlite.sql import sql

WORKERS_KEPT_SECONDS = 86_400.0
QUEUES_KEPT_SECONDS = 86_400.0

QueueUse = tuple[float, str]
"""When a queue was used last, and its name."""
# At how many places old jobs are looked for behind younger ones.
SAMPLES = 64


def find_old(
    transaction: Transaction, *, older_than: float | None, keep: int | None, limit: int
) -> list[tuple[int, str]]:
    """Up to `limit` finished jobs that may go, the oldest first, by number and id.

    Only reads: there may be many to count, and many children of parents that stay to pass over,
    so it is not for the time when the write lock is held.
    """
    connection = transaction.connection
    before = -math.inf if older_than is None else transaction.now - older_than
    excess = 0
    if keep is not None:
        [(count,)] = connection.execute(sql.history_count).fetchall()
        excess = count - keep
    parents = _Parents(connection, before, excess)
    found, rest = _walk(connection, 0, before, excess, limit, parents=parents)
    if rest is not None and len(found) < limit:
        # The numbers are not in the order of time if the clock was ahead, or behind, for a while.
        start = _old_behind(connection, rest, before)
        if start is not None:
            found += _walk(connection, start, before, 0, limit - len(found), parents=parents)[0]
    return found


class _Parents:
    """Which parents stay: unfinished ones, those that are not old enough, and those that are spared
    because their own parents stay. A circle of parents keeps nobody.
    """

    def __init__(self, connection: sqlite3.Connection, before: float, excess: int) -> None:
        self._connection = connection
        self._before = before
        self._excess = excess
        self._last: int | None = None
        self._stay: dict[str, bool] = {}

    def stay(self, job_id: str | None) -> bool:
        """Whether this parent stays; None is nobody."""
        passed: list[str] = []
        answer = False
        while job_id is not None and job_id not in passed:
            known = self._stay.get(job_id)
            if known is not None:
                answer = known
                break
            passed.append(job_id)
            if self._connection.execute(sql.unfinished, (job_id,)).fetchone() is not None:
                answer = True
                break
            row = self._connection.execute(sql.prune_parent, (job_id,)).fetchone()
            if row is None:
                break
            number, completed_at, job_id = row
            if completed_at >= self._before and number > self._last_beyond():
                answer = True
                break
        self._stay.update(dict.fromkeys(passed, answer))
        return answer

    def _last_beyond(self) -> int:
        """The number of the last job beyond the newest that are to be kept."""
        if self._last is None:
            row = None
            if self._excess > 0:
                row = self._connection.execute(sql.history_beyond, (self._excess - 1,)).fetchone()
            self._last = -1 if row is None else row[0]
        return self._last


def _walk(
    connection: sqlite3.Connection,
    start: int,
    before: float,
    excess: int,
    limit: int,
    *,
    parents: _Parents,
) -> tuple[list[tuple[int, str]], int | None]:
    """Those that may go from a number on, and the number at which only young ones were met."""
    found: list[tuple[int, str]] = []
    young = 0
    rows = connection.execute(sql.prune_old, (start,))
    try:
        for position, (number, job_id, completed_at, parent) in enumerate(rows):
            if completed_at >= before and position >= excess:
                young += 1
                if young >= limit:
                    return found, number
            elif parent is None or not parents.stay(parent):
                found.append((number, job_id))
                if len(found) >= limit:
                    break
    finally:
        rows.close()
    return found, None


def _old_behind(connection: sqlite3.Connection, young: int, before: float) -> int | None:
    """The number at which jobs that are old begin behind one that is not, if some samples meet any.

    They are at other places each time, so none is missed for ever.
    """
    [(last,)] = connection.execute(sql.history_last).fetchall()
    step = (last - young) / SAMPLES
    shift = random.random()  # noqa: S311 - not for secrets
    for sample in [*(int(young + step * (n + shift)) for n in range(SAMPLES)), last]:
        if _finished_before(connection, sample, before):
            old = sample
            break
        young = max(young, sample)
    else:
        return None
    while old - young > 1:
        middle = (young + old) // 2
        if _finished_before(connection, middle, before):
            old = middle
        else:
            young = middle
    return int(old)


def _finished_before(connection: sqlite3.Connection, number: int, before: float) -> bool:
    row = connection.execute(sql.history_at, (number,)).fetchone()
    return row is not None and row[1] < before


def prune(transaction: Transaction, found: list[tuple[int, str]]) -> int:
    """Delete these finished jobs with their keys and entries; clear long dead workers."""
    connection, now = transaction.connection, transaction.now
    asked = msgspec.json.encode(found).decode()
    rows = connection.execute(sql.prune_again, (asked,)).fetchall()
    connection.execute(sql.prune_artifacts, (now, id_list([row[1] for row in rows])))
    connection.executemany(sql.prune_job, [(number,) for number, *_ in rows])
    connection.executemany(sql.prune_entries, [(job_id,) for _, job_id, _, _ in rows])
    connection.executemany(
        sql.prune_key, [(key, task, job_id) for _, job_id, key, task in rows if key is not None]
    )
    connection.execute(sql.prune_workers, (now - WORKERS_KEPT_SECONDS,))
    return len(rows)


def find_unused_queues(transaction: Transaction, after: QueueUse, limit: int) -> list[QueueUse]:
    """Return queues behind `after` that were not used lately and may be forgotten, in the order of
    their last use. Only reads.
    """
    before, ahead = _lately(transaction)
    rows: list[QueueUse] = []
    if after[0] < before:
        rows = transaction.connection.execute(sql.queues_unused, (*after, before, limit)).fetchall()
        if len(rows) == limit:
            return rows
    # A time that is far ahead is of a clock that was wrong.
    after, limit = max(after, (ahead, "")), limit - len(rows)
    return [*rows, *transaction.connection.execute(sql.queues_unused, (*after, math.inf, limit))]


def forget_queues(transaction: Transaction, uses: list[QueueUse]) -> None:
    """Forget these queues, except those that were used or paused in the meantime."""
    lately = _lately(transaction)
    transaction.connection.executemany(sql.queue_forget, [(name, *lately) for _, name in uses])


def _lately(transaction: Transaction) -> tuple[float, float]:
    return transaction.now - QUEUES_KEPT_SECONDS, transaction.now + QUEUES_KEPT_SECONDS
