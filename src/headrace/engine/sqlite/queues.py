"""Queues: which of them a claim looks at, and when they are forgotten.

A queue's row tells that it is paused, and for people that it was used lately. Nothing else depends
on it: claims look for queues that have ready jobs, so a million queues that were used once cost
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.sql import query

QUEUES_READY = query("queues_ready")
QUEUES_NAMED = query("queues_named")
QUEUES_UNUSED = query("queues_unused")
QUEUE_FORGET = query("queue_forget")
QUEUE_SEEN = query("queue_seen")

KEPT_SECONDS = 86_400.0


def open_queues(transaction: Transaction, queues: Sequence[str] | None) -> set[str]:
    """The queues that a claim has to look at: of these, or those with ready jobs; none paused."""
    execute = transaction.connection.execute
    if queues is None:
        return {name for (name,) in execute(QUEUES_READY)}
    asked = msgspec.json.encode(queues).decode()
    return {name for (name,) in execute(QUEUES_NAMED, (asked,))}


def use(transaction: Transaction, names: set[str]) -> None:
    """Remember that jobs have come into these queues."""
    now = transaction.now
    transaction.connection.executemany(QUEUE_SEEN, [(name, now) for name in names])


def find_unused(transaction: Transaction, after: str, limit: int) -> list[str]:
    """Queues behind one of them that may be forgotten, in their order. Only reads."""
    rows = transaction.connection.execute(QUEUES_UNUSED, (*_lately(transaction), after, limit))
    return [name for (name,) in rows]


def forget(transaction: Transaction, names: list[str]) -> None:
    """Forget these queues, but for those that were used or paused in the meantime."""
    lately = _lately(transaction)
    transaction.connection.executemany(QUEUE_FORGET, [(name, *lately) for name in names])


def _lately(transaction: Transaction) -> tuple[float, float]:
    return transaction.now - KEPT_SECONDS, transaction.now + KEPT_SECONDS
