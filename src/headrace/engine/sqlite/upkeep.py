"""What keeps the store moving: jobs whose time has come."""

from __future__ import annotations

import msgspec

from headrace.engine.sqlite import lanes
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import Row
from headrace.engine.sqlite.settle import READY, WAITING
from headrace.engine.sqlite.sql import query
from headrace.model.views import Due

DUE = query("due")
DUE_MOVE = query("due_move")
DUE_NEXT = query("due_next")
DUE_NOW = query("due_now")
SUSPEND_END = query("suspend_end")


def due(transaction: Transaction, limit: int) -> Due:
    """Make scheduled jobs pending whose time has come."""
    connection, now = transaction.connection, transaction.now
    rows = connection.execute(DUE, (now, limit)).fetchall()
    move(transaction, rows)
    [(next_at,)] = connection.execute(DUE_NEXT).fetchall()
    return Due(len(rows), None if next_at is None else max(next_at - now, 0.0))


def hurry(transaction: Transaction, rows: list[Row]) -> None:
    """Make these scheduled jobs, rows of due.sql, due at once."""
    # The time first: a job may be moved on in the same transaction, but it was due from now.
    transaction.connection.executemany(DUE_NOW, [(transaction.now, row[0]) for row in rows])
    move(transaction, rows)


def end_suspense(transaction: Transaction, seqs: list[int]) -> None:
    """These jobs are not scheduled any more: forget what they waited for, if they did."""
    if seqs:
        asked = msgspec.json.encode(seqs).decode()
        transaction.connection.execute(SUSPEND_END, (asked,))


def move(transaction: Transaction, rows: list[Row]) -> None:
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
    # One that has never run has never been suspended.
    end_suspense(transaction, [row[0] for row in rows if row[5]])
    arrivals.admit(transaction)
