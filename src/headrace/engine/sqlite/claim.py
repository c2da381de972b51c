"""Leasing ready jobs to workers."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import islice

import msgspec

from headrace.engine.sqlite.rows import claimed
from headrace.engine.sqlite.sql import query
from headrace.engine.sqlite.thread import Transaction
from headrace.model.job import ClaimedJob

CLAIM = query("claim")
CLAIMABLE = query("claimable")
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
    lines = [connection.execute(CLAIMABLE, (name, limit)).fetchall() for name in names]
    if len(lines) == 1:
        chosen = [seq for _, seq in lines[0]]
    else:
        merged = heapq.merge(*lines, key=lambda row: (-row[0], row[1]))
        chosen = [seq for _, seq in islice(merged, limit)]
    if not chosen:
        return []
    rows = connection.execute(
        CLAIM, (worker_id, now, msgspec.json.encode(chosen).decode())
    ).fetchall()
    rank = {seq: place for place, seq in enumerate(chosen)}
    rows.sort(key=lambda row: rank[row[SEQ]])
    return [claimed(row) for row in rows]


def held(transaction: Transaction, worker_id: str) -> list[ClaimedJob]:
    """The jobs that are leased to a worker."""
    return [claimed(row) for row in transaction.connection.execute(HELD, (worker_id,))]
