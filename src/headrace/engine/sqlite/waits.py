"""Jobs that wait for something: what was delivered to them, and whether their wait is over."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.sqlite import upkeep
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rows import id_list
from headrace.engine.sqlite.sql import query
from headrace.engine.text import storable
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent, decode_awaited
from headrace.model.views import Delivery

SUSPENDED = query("suspended")
WAKE_LOOK = query("wake_look")
WAKE_EVENT = query("wake_event")
WAKE_CHILDREN = query("wake_children")
WAKE_GROUP = query("wake_group")
SIGNAL_LOOK = query("signal_look")
SIGNAL = query("signal")


def wake(transaction: Transaction, ids: Sequence[str]) -> list[str]:
    """Make those of these suspended jobs due whose wait is over; answers them."""
    asked = id_list(list(dict.fromkeys(ids)))
    rows = [
        row
        for row in transaction.connection.execute(WAKE_LOOK, (asked,)).fetchall()
        if any(_has_come_about(transaction, row[6], each) for each in decode_awaited(row[7]))
    ]
    upkeep.hurry(transaction, [row[:6] for row in rows])
    return [row[6] for row in rows]


def _has_come_about(transaction: Transaction, job_id: str, awaited: Awaited) -> bool:
    connection = transaction.connection
    match awaited:
        case AwaitedEvent(name=name):
            values = (job_id, storable(name))
            return connection.execute(WAKE_EVENT, values).fetchone() is not None
        case AwaitedChildren(group=None, left=left):
            return connection.execute(WAKE_CHILDREN, (job_id, left)).fetchone() is None
        case AwaitedChildren(group=group, left=left):
            return connection.execute(WAKE_GROUP, (job_id, group, left)).fetchone() is None


def suspended(transaction: Transaction, after: str, limit: int) -> list[str]:
    """Ids of suspended jobs, after one of them."""
    return [job_id for (job_id,) in transaction.connection.execute(SUSPENDED, (after, limit))]


def signal(transaction: Transaction, job_id: str, event: str, body: bytes) -> Delivery:
    """Keep an event with its job, if it is the first of its name and the job is unfinished."""
    connection, event = transaction.connection, storable(event)
    [(token, finished)] = connection.execute(SIGNAL_LOOK, (job_id,)).fetchall()
    if token is not None:
        values = (job_id, event, body, token, transaction.now)
        return "delivered" if connection.execute(SIGNAL, values).rowcount == 1 else "already"
    if not finished:
        return "unknown"
    known = connection.execute(WAKE_EVENT, (job_id, event)).fetchone()
    return "finished" if known is None else "already"
