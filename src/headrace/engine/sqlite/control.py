"""What people do to jobs and queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from headrace.engine.sqlite import lanes, records
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.rates import keys
from headrace.engine.sqlite.rows import id_list, next_arrivals
from headrace.engine.sqlite.settle import (
    CANCELLED,
    READY,
    RUNNING,
    WAITING,
)
from headrace.engine.sqlite.sql import sql
from headrace.engine.sqlite.upkeep import due
from headrace.engine.stored_text import storable
from headrace.model.views import RecordChange

CancelRow = tuple[str, int, int, str, str | None, int]
"""Id, seq, state, queue, lane, and whether it is pinned."""


def cancel(
    transaction: Transaction, ids: Sequence[str], reason: str = "cancelled"
) -> dict[str, bool]:
    """Cancel jobs that do not run, ask those that do to stop."""
    connection = transaction.connection
    reason = storable(reason)
    answer: dict[str, bool] = {}
    idle: list[CancelRow] = []
    unique = list(dict.fromkeys(ids))
    for row in connection.execute(sql.cancel_look, (id_list(unique),)).fetchall():
        job_id, seq, state, *_ = row
        answer[job_id] = state != RUNNING
        if state == RUNNING:
            connection.execute(sql.cancel_ask, (reason, seq))
            transaction.cancelling.append(job_id)
        else:
            idle.append(row)
    end(transaction, idle, reason)
    return answer


def end(transaction: Transaction, rows: Sequence[CancelRow], reason: str) -> None:
    """Cancel these jobs, which do not run, and give their places to the next."""
    connection, now = transaction.connection, transaction.now
    freed: Counter[lanes.Place] = Counter()
    parked: set[lanes.Place] = set()
    for _, seq, state, queue, lane, pinned in rows:
        connection.execute(sql.finish, (CANCELLED, now, None, reason, None, None, seq))
        if lane is not None and (state == READY or pinned):
            freed[queue, lane] += 1
            if pinned:
                parked.add((queue, lane))
    gone = [seq for _, seq, *_ in rows]
    removed = (msgspec.json.encode(gone).decode(),)
    connection.execute(sql.finish_remove, removed)
    connection.execute(sql.expiry_forget, removed)
    due.end_suspense(transaction, gone)
    lanes.release(transaction, freed)
    keys.move_up(transaction, parked)


def rerun(transaction: Transaction, ids: Sequence[str]) -> list[str]:
    """Run finished jobs again, and scheduled ones now; answers those that were moved."""
    unique = list(dict.fromkeys(ids))
    moved = _rerun_finished(transaction, unique) | _run_now(transaction, unique)
    return [job_id for job_id in unique if job_id in moved]


def rerun_unchanged(transaction: Transaction, tokens: Mapping[str, int]) -> list[str]:
    """Run those finished jobs again that have these tokens; answers those that were moved."""
    finished = transaction.connection.execute
    unchanged = [each for each in tokens.items() if finished(sql.finished, each).fetchone()]
    moved = _rerun_finished(transaction, [job_id for job_id, _ in unchanged])
    return [job_id for job_id in tokens if job_id in moved]


def rerun_without(
    transaction: Transaction,
    job_id: str,
    names: Sequence[tuple[str, str]],
    *,
    token: int,
    record: RecordChange | None = None,
) -> bool:
    """Run a finished job again without some of its entries; False if it has another token."""
    connection = transaction.connection
    if connection.execute(sql.finished, (job_id, token)).fetchone() is None:
        return False
    connection.executemany(
        sql.forget, [(job_id, storable(kind), storable(name)) for kind, name in names]
    )
    if record is not None:
        records.put(transaction, record.kind, record.key, record.body)
    return bool(_rerun_finished(transaction, [job_id]))


def _rerun_finished(transaction: Transaction, ids: list[str]) -> set[str]:
    connection, now = transaction.connection, transaction.now
    rows = connection.execute(sql.rerun_look, (id_list(ids),)).fetchall()
    if not rows:
        return set()
    first = next_arrivals(connection, len(rows))
    arrivals = lanes.LaneArrivals()
    for seq, (number, _, queue, lane, width, _) in enumerate(rows, first):
        connection.execute(sql.rerun, (seq, READY if lane is None else WAITING, now, number))
        connection.execute(sql.prune_job, (number,))
        if lane is None:
            transaction.made_ready.add(queue)
        else:
            arrivals.add((queue, lane), width, seq, new=False)
    arrivals.admit(transaction)
    keys.bring_back(transaction, (((row[2], row[3]), row[5]) for row in rows))
    return {row[1] for row in rows}


def _run_now(transaction: Transaction, ids: list[str]) -> set[str]:
    rows = transaction.connection.execute(sql.rerun_scheduled_look, (id_list(ids),)).fetchall()
    due.hurry(transaction, [row[:6] for row in rows])
    return {row[6] for row in rows}


def pause(transaction: Transaction, queue: str, paused: bool) -> None:
    """Stop or resume handing out a queue's jobs."""
    transaction.connection.execute(sql.pause, (queue, paused, transaction.now))
    if not paused:
        transaction.made_ready.add(queue)
