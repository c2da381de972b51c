"""What keeps the store moving: due times and pruning."""

from __future__ import annotations

import math

from headrace.engine.sqlite import lanes
from headrace.engine.sqlite.settle import READY, WAITING
from headrace.engine.sqlite.sql import query
from headrace.engine.sqlite.thread import Transaction
from headrace.model.views import Due

DUE = query("due")
DUE_MOVE = query("due_move")
DUE_NEXT = query("due_next")
PRUNE_OLD = query("prune_old")
HISTORY_COUNT = query("history_count")
HISTORY_NUMBER = query("history_number")
PRUNE_JOB = query("prune_job")
PRUNE_ENTRIES = query("prune_entries")
PRUNE_KEY = query("prune_key")
PRUNE_LANES = query("prune_lanes")
PRUNE_WORKERS = query("prune_workers")

WORKERS_KEPT_SECONDS = 86_400.0


def due(transaction: Transaction, limit: int) -> Due:
    """Make scheduled jobs pending whose time has come."""
    connection, now = transaction.connection, transaction.now
    rows = connection.execute(DUE, (now, limit)).fetchall()
    move(transaction, rows)
    [(next_at,)] = connection.execute(DUE_NEXT).fetchall()
    return Due(len(rows), None if next_at is None else max(next_at - now, 0.0))


def move(transaction: Transaction, rows: list[tuple[int, str, str | None, int, int, int]]) -> None:
    """Make these scheduled jobs, rows of due.sql, ready or let them wait in their lanes."""
    moves: list[tuple[int, int]] = []
    arrivals = lanes.Arrivals()
    for seq, queue, lane, width, pinned, token in rows:
        if lane is None or pinned:
            moves.append((READY, seq))
            transaction.made_ready.add(queue)
        else:
            moves.append((WAITING, seq))
            arrivals.add((queue, lane), width, new=token == 0)
    transaction.connection.executemany(DUE_MOVE, moves)
    arrivals.admit(transaction)


def beyond(transaction: Transaction, keep: int, limit: int) -> int:
    """The number up to which finished jobs are too many, as far as `limit` of them go."""
    [(count,)] = transaction.connection.execute(HISTORY_COUNT).fetchall()
    excess = min(count - keep, limit)
    if excess <= 0:
        return 0
    [(number,)] = transaction.connection.execute(HISTORY_NUMBER, (excess - 1,)).fetchall()
    return int(number)


def prune(
    transaction: Transaction, *, older_than: float | None, up_to_number: int, limit: int
) -> int:
    """Delete finished jobs, oldest first, with their keys and entries; clear idle lanes."""
    connection, now = transaction.connection, transaction.now
    before = -math.inf if older_than is None else now - older_than
    rows = connection.execute(PRUNE_OLD, (before, up_to_number, limit)).fetchall()
    connection.executemany(PRUNE_JOB, [(number,) for number, *_ in rows])
    connection.executemany(PRUNE_ENTRIES, [(job_id,) for _, job_id, _, _ in rows])
    connection.executemany(
        PRUNE_KEY, [(key, task, job_id) for _, job_id, key, task in rows if key is not None]
    )
    connection.execute(PRUNE_LANES, (limit,))
    connection.execute(PRUNE_WORKERS, (now - WORKERS_KEPT_SECONDS,))
    return len(rows)
