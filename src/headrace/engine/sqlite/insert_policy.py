"""Taking in a job that has a policy for its key or its lane."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headrace.engine.sqlite import control
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.insert import due_time, expiry_time, store
from headrace.engine.sqlite.rates import keys
from headrace.engine.sqlite.rows import id_list
from headrace.engine.sqlite.settle import SCHEDULED
from headrace.engine.sqlite.sql import sql
from headrace.engine.sqlite.upkeep import due
from headrace.model.insert_policy import InsertPolicy, replaced_by
from headrace.model.job import Inserted, NewJob, PolicyInserted


class _Holder(NamedTuple):
    """The job that has a key, as key_holder.sql answers it."""

    created_at: float
    id: str
    seq: int | None
    state: int
    queue: str
    lane: str | None
    pinned: int
    width: int
    token: int
    run_at: float

    @property
    def unstarted(self) -> bool:
        """Whether it was never claimed."""
        return self.seq is not None and self.token == 0


def insert_by_policy(transaction: Transaction, job: NewJob) -> PolicyInserted:
    """Store a job, and do to others what its policy says."""
    policy = job.policy or InsertPolicy()
    if transaction.connection.execute(sql.known_ids, (id_list([job.id]),)).fetchone():
        return PolicyInserted(Inserted(job.id, False))
    ended: dict[str, bool] = {}
    holder = _key_holder(transaction, job)
    if holder is not None:
        if _stays(transaction, holder, job, policy):
            return PolicyInserted(Inserted(holder.id, False))
        if holder.unstarted and policy.on_duplicate != "return":
            ended = control.cancel(transaction, [holder.id], replaced_by(job.id))
    free = job.lane is None or due_time(transaction.now, job) > transaction.now
    if free or policy.when_full == "wait":
        _store(transaction, job)
    elif not _store_if_free(transaction, job):
        if policy.when_full == "refuse":
            return PolicyInserted(None)
        ended = _empty_lane(transaction, job, running=policy.when_full == "cancel_running")
        _store(transaction, job)
    return PolicyInserted(
        Inserted(job.id, True),
        tuple(job_id for job_id, over in ended.items() if over),
        tuple(job_id for job_id, over in ended.items() if not over),
    )


def _key_holder(transaction: Transaction, job: NewJob) -> _Holder | None:
    if job.key is None:
        return None
    row = transaction.connection.execute(sql.key_holder, (job.key, job.task)).fetchone()
    return None if row is None else _Holder(*row)


def _stays(transaction: Transaction, holder: _Holder, job: NewJob, policy: InsertPolicy) -> bool:
    """Whether the job that has the key counts, and not the new one, whose arguments it may get."""
    if policy.on_duplicate == "return":
        return policy.window is None or transaction.now - holder.created_at < policy.window
    alike = (holder.queue, holder.lane) == (job.queue, job.lane)
    if policy.on_duplicate == "debounce" and holder.unstarted and alike:
        _debounce(transaction, holder, job, policy)
        return True
    return False


def _debounce(transaction: Transaction, holder: _Holder, job: NewJob, policy: InsertPolicy) -> None:
    """Give the new arguments to the job that is there. Its time is that of the new one, if it was
    not due yet, but not later than it may be put off.
    """
    connection, now, seq = transaction.connection, transaction.now, holder.seq
    connection.execute(sql.debounce, (job.args, job.meta or "", seq))
    if job.expires_in is None and job.expires_at is None:
        connection.execute(sql.expiry_forget, (msgspec.json.encode([seq]).decode(),))
    else:
        at = expiry_time(now, job)
        connection.execute(sql.expiry_set, (seq, at, at))
    if job.rate is not None and seq is not None:
        keys.keep(transaction, [(seq, job)])
    # One that has a place in its lane is due: it waits for the rate.
    if holder.state != SCHEDULED or holder.run_at <= now or holder.pinned:
        return
    run_at = due_time(now, job)
    if policy.max_wait is not None:
        run_at = min(run_at, holder.created_at + policy.max_wait)
    connection.execute(sql.due_at, (run_at, seq))
    if run_at <= now:
        # As a new one would be.
        row = (seq, holder.queue, holder.lane, holder.width, holder.pinned, holder.token)
        due.move(transaction, [row])


def _store(transaction: Transaction, job: NewJob) -> None:
    """Store a job, which has its key from now on."""
    if job.key is not None:
        transaction.connection.execute(sql.key_move, (job.key, job.task, job.id))
    store(transaction, [job])


def _store_if_free(transaction: Transaction, job: NewJob) -> bool:
    """Store a job if its lane has a place for it and for all others. Only after it has come is that
    known: by its width others are let in, too. By its priority it may have put another one back.
    """
    connection = transaction.connection
    connection.execute("SAVEPOINT arrival")
    _store(transaction, job)
    full = connection.execute(sql.lane_waiting, (job.queue, job.lane)).fetchone() is not None
    if full:
        connection.execute("ROLLBACK TO arrival")
        # Queues are marked again by whoever uses them next: these marks are gone.
        transaction.used.clear()
    connection.execute("RELEASE arrival")
    return not full


def _empty_lane(transaction: Transaction, job: NewJob, *, running: bool) -> dict[str, bool]:
    """Cancel all that wait in the lane of a job, and with `running` all that hold a place."""
    place = (job.queue, job.lane)
    execute = transaction.connection.execute
    ids = [job_id for (job_id,) in execute(sql.lane_waiting, place)]
    if running:
        asked = msgspec.json.encode([place]).decode()
        ids += [job_id for *_, job_id in execute(sql.lane_holders, (asked, asked, asked))]
    return control.cancel(transaction, ids, replaced_by(job.id))
