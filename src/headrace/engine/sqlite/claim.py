"""Leasing ready jobs to workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from headrace.engine.sqlite.rows import claimed
from headrace.engine.sqlite.sql import query
from headrace.engine.sqlite.thread import Transaction
from headrace.model.job import ClaimedJob

CLAIM = query("claim")
CLAIMABLE = query("claimable")
CLAIMABLE_KEYS = query("claimable_keys")
CLAIMABLE_CHOSEN = query("claimable_chosen")
WORKER_ALIVE = query("worker_alive")
QUEUES_OPEN = query("queues_open")
HELD = query("held")

SEQ = 16


def claim(
    transaction: Transaction, worker_id: str, queues: Sequence[str] | None, limit: int
) -> list[ClaimedJob]:
    """Lease up to `limit` ready jobs to a living worker, by priority, then arrival."""
    connection, now = transaction.connection, transaction.now
    if limit <= 0 or connection.execute(WORKER_ALIVE, (worker_id,)).fetchone() is None:
        return []
    names = {name for (name,) in connection.execute(QUEUES_OPEN)}
    if queues is not None:
        names.intersection_update(queues)
    if len(names) == 1:
        rows = connection.execute(CLAIMABLE, (*names, limit, now)).fetchall()
        chosen = msgspec.json.encode([row[SEQ] for row in rows]).decode()
    else:
        chosen = msgspec.json.encode(_best(transaction, names, limit)).decode()
        rows = connection.execute(CLAIMABLE_CHOSEN, (chosen, now)).fetchall()
    if len(rows) < limit:
        # Nothing is left in these queues: nobody has to be told of what this call made ready.
        transaction.made_ready -= names
    if rows:
        connection.execute(CLAIM, (worker_id, now, chosen))
    return [claimed(row) for row in rows]


def _best(transaction: Transaction, names: Iterable[str], limit: int) -> list[int]:
    """The best ready jobs of several queues, by priority, then arrival."""
    best: list[tuple[int, int]] = []
    for name in names:
        line: list[tuple[int, int]] = []
        for priority, seq in transaction.connection.execute(CLAIMABLE_KEYS, (name, limit)):
            if len(best) == limit and (-priority, seq) > best[-1]:
                break
            line.append((-priority, seq))
        best = sorted(best + line)[:limit]
    return [seq for _, seq in best]


def held(transaction: Transaction, worker_id: str) -> list[ClaimedJob]:
    """The jobs that are leased to a worker."""
    return [claimed(row) for row in transaction.connection.execute(HELD, (worker_id,))]
