"""Queues: which of them a claim looks at, and when they are forgotten.

A queue's row tells that it is paused, and for people that it was used lately. Nothing else depends
on it: claims look for queues that have ready jobs, so a million queues that were used once cost
nothing.
"""

from __future__ import annotations

import math
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

Use = tuple[float, str]
"""When a queue was used last, and its name."""


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


def find_unused(transaction: Transaction, after: Use, limit: int) -> list[Use]:
    """Queues that nobody has used lately and that may be forgotten, in the order of their last use,
    behind one of them. Only reads.
    """
    before, ahead = _lately(transaction)
    if after[0] < before:
        rows = transaction.connection.execute(QUEUES_UNUSED, (*after, before, limit)).fetchall()
        if len(rows) == limit:
            return rows
    else:
        rows = []
    # A time that is far ahead is of a clock that was wrong.
    after, limit = max(after, (ahead, "")), limit - len(rows)
    return (
        rows + transaction.connection.execute(QUEUES_UNUSED, (*after, math.inf, limit)).fetchall()
    )


def forget(transaction: Transaction, uses: list[Use]) -> None:
    """Forget these queues, but for those that were used or paused in the meantime."""
    lately = _lately(transaction)
    transaction.connection.executemany(QUEUE_FORGET, [(name, *lately) for _, name in uses])


def _lately(transaction: Transaction) -> tuple[float, float]:
    return transaction.now - KEPT_SECONDS, transaction.now + KEPT_SECONDS
