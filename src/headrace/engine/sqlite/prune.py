"""Deleting what finished long ago."""

from __future__ import annotations

import math

import msgspec

from headrace.engine.sqlite.rows import id_list
from headrace.engine.sqlite.sql import query
from headrace.engine.sqlite.thread import Transaction

PRUNE_OLD = query("prune_old")
PRUNE_AGAIN = query("prune_again")
PRUNE_ARTIFACTS = query("prune_artifacts")
PRUNE_JOB = query("prune_job")
PRUNE_ENTRIES = query("prune_entries")
PRUNE_KEY = query("prune_key")
PRUNE_LANES = query("prune_lanes")
PRUNE_WORKERS = query("prune_workers")
HISTORY_COUNT = query("history_count")

WORKERS_KEPT_SECONDS = 86_400.0


def find(
    transaction: Transaction, *, older_than: float | None, keep: int | None, limit: int
) -> list[tuple[int, str]]:
    """Up to `limit` finished jobs that may go, the oldest first, by number and id.

    Only reads: there may be many to count, and many children of unfinished parents to pass over,
    so it is not for the time when the write lock is held.
    """
    connection = transaction.connection
    before = -math.inf if older_than is None else transaction.now - older_than
    excess = 0
    if keep is not None:
        [(count,)] = connection.execute(HISTORY_COUNT).fetchall()
        excess = count - keep
    found: list[tuple[int, str]] = []
    young = 0
    rows = connection.execute(PRUNE_OLD)
    for position, (number, job_id, completed_at, spared) in enumerate(rows):
        if completed_at >= before and position >= excess:
            # All that follow are younger, but for those from before a clock was set back.
            young += 1
        elif not spared:
            found.append((number, job_id))
        if len(found) >= limit or young >= limit:
            break
    rows.close()
    return found


def prune(transaction: Transaction, found: list[tuple[int, str]], *, limit: int) -> int:
    """Delete these finished jobs with their keys and entries; clear idle lanes."""
    connection, now = transaction.connection, transaction.now
    asked = msgspec.json.encode(found).decode()
    rows = connection.execute(PRUNE_AGAIN, (asked,)).fetchall()
    connection.execute(PRUNE_ARTIFACTS, (id_list([row[1] for row in rows]), now))
    connection.executemany(PRUNE_JOB, [(number,) for number, *_ in rows])
    connection.executemany(PRUNE_ENTRIES, [(job_id,) for _, job_id, _, _ in rows])
    connection.executemany(
        PRUNE_KEY, [(key, task, job_id) for _, job_id, key, task in rows if key is not None]
    )
    connection.execute(PRUNE_LANES, (limit,))
    connection.execute(PRUNE_WORKERS, (now - WORKERS_KEPT_SECONDS,))
    return len(rows)
