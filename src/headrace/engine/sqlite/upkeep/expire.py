"""Jobs that have not started in time."""

from __future__ import annotations

import msgspec

from headrace.engine.sqlite import control
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.settle import RUNNING
from headrace.engine.sqlite.sql import sql
from headrace.model.insert_policy import EXPIRED
from headrace.model.views import Expired

# After so many seconds it is looked again at a job that runs: it may be given back unstarted. Who
# gives it back says so, except for programs of before.
LOOK_AGAIN_SECONDS = 60.0


def expire(transaction: Transaction, limit: int) -> Expired:
    """Cancel jobs that should have started by now and have not, the earliest first.

    Each that is looked at is cancelled, forgotten, or put off: none is met twice at one moment.
    """
    connection, now = transaction.connection, transaction.now
    unstarted: list[control.CancelRow] = []
    running: list[int] = []
    over: list[int] = []
    for row in connection.execute(sql.expiry_due, (now, limit)).fetchall():
        job_id, seq, state, *_, attempt = row
        if job_id is not None and attempt == 0:
            unstarted.append(row[:6])
        elif job_id is not None and attempt == 1 and state == RUNNING:
            running.append(seq)
        else:
            over.append(seq)
    if running:
        later = (now + LOOK_AGAIN_SECONDS, msgspec.json.encode(running).decode())
        connection.execute(sql.expiry_put_off, later)
    if over:
        connection.execute(sql.expiry_forget, (msgspec.json.encode(over).decode(),))
    if unstarted:
        control.end(transaction, unstarted, EXPIRED)
    [(next_at,)] = connection.execute(sql.expiry_next).fetchall()
    return Expired(
        tuple(row[0] for row in unstarted), None if next_at is None else max(next_at - now, 0.0)
    )
