"""Due and suspended jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.engine.sqlite import lanes
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import Row, id_list
from headrace.engine.sqlite.settle import READY, WAITING
from headrace.engine.sqlite.sql import sql
from headrace.engine.stored_text import storable
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent, decode_awaited
from headrace.model.views import Delivery, Due


def promote_due(transaction: Transaction, limit: int) -> Due:
    """Make scheduled jobs pending whose time has come."""
    connection, now = transaction.connection, transaction.now
    rows = connection.execute(sql.due, (now, limit)).fetchall()
    move(transaction, rows)
    [(next_at,)] = connection.execute(sql.due_next).fetchall()
    return Due(len(rows), None if next_at is None else max(next_at - now, 0.0))


def hurry(transaction: Transaction, rows: list[Row]) -> None:
    """Make these scheduled jobs, rows of due.sql, due at once."""
    # The time first: a job may be moved on in the same transaction, but it was due from now.
    transaction.connection.executemany(sql.due_at, [(transaction.now, row[0]) for row in rows])
    move(transaction, rows)


def end_suspense(transaction: Transaction, seqs: list[int]) -> None:
    """These jobs are not scheduled any more: forget what they waited for, if they did."""
    if seqs:
        asked = msgspec.json.encode(seqs).decode()
        transaction.connection.execute(sql.suspend_end, (asked,))


def move(transaction: Transaction, rows: list[Row]) -> None:
    """Make these scheduled jobs, rows of due.sql, ready or let them wait in their lanes."""
    moves: list[tuple[int, int]] = []
    arrivals = lanes.LaneArrivals()
    for seq, queue, lane, width, pinned, token in rows:
        if lane is None or pinned:
            moves.append((READY, seq))
            transaction.made_ready.add(queue)
        else:
            moves.append((WAITING, seq))
            arrivals.add((queue, lane), width, seq, new=token == 0)
    transaction.connection.executemany(sql.due_move, moves)
    # One that has never run has never been suspended.
    end_suspense(transaction, [row[0] for row in rows if row[5]])
    arrivals.admit(transaction)


def wake(transaction: Transaction, ids: Sequence[str]) -> list[str]:
    """Make those of these suspended jobs due whose wait is over; answers them."""
    asked = id_list(list(dict.fromkeys(ids)))
    rows = [
        row
        for row in transaction.connection.execute(sql.wake_look, (asked,)).fetchall()
        if any(_has_come_about(transaction, row[6], each) for each in decode_awaited(row[7]))
    ]
    hurry(transaction, [row[:6] for row in rows])
    return [row[6] for row in rows]


def _has_come_about(transaction: Transaction, job_id: str, awaited: Awaited) -> bool:
    connection = transaction.connection
    match awaited:
        case AwaitedEvent(name=name):
            values = (job_id, storable(name))
            return connection.execute(sql.wake_event, values).fetchone() is not None
        case AwaitedChildren(group=None, left=left):
            return connection.execute(sql.wake_children, (job_id, left)).fetchone() is None
        case AwaitedChildren(group=group, left=left):
            return connection.execute(sql.wake_group, (job_id, group, left)).fetchone() is None


def suspended(transaction: Transaction, *, after: str = "", limit: int = 1_000) -> list[str]:
    """Ids of suspended jobs, after one of them."""
    return [job_id for (job_id,) in transaction.connection.execute(sql.suspended, (after, limit))]


def signal(transaction: Transaction, job_id: str, event: str, body: bytes) -> Delivery:
    """Keep an event with its job, if it is the first of its name and the job is unfinished."""
    connection, event = transaction.connection, storable(event)
    [(token, finished)] = connection.execute(sql.signal_look, (job_id, job_id)).fetchall()
    if token is not None:
        values = (job_id, event, body, token, transaction.now)
        return "delivered" if connection.execute(sql.signal, values).rowcount == 1 else "already"
    if not finished:
        return "unknown"
    known = connection.execute(sql.wake_event, (job_id, event)).fetchone()
    return "finished" if known is None else "already"
