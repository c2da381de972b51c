"""Inserting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headrace.model.job import Inserted, NewJob, PolicyInserted
from headrace.model.views import (
    RecordChange,
)


class Producing(Protocol):
    """Taking jobs in."""

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        """Store jobs durably, in this order; the result is in the same order.

        A job whose id exists, finished or not, is not stored again: the result is that id, not
        created. So a call can be repeated. One whose (task, key) exists, in the store or earlier
        in the call, is not stored either: the result names the job that has it. Of several with
        one id in a call the first counts, and the others get the same result.
        The caller bounds the size of a call.

        `record` is written in the same step. If its version does not hold, `RecordConflict` is
        raised and no job is stored. A call with a version that is repeated may meet its own change.

        A key may be in doubt: a transaction that is still open has stored a job with it (see
        `insert_within`). Then only this call waits for the end of that, up to 30 s. After
        that, or at once without `wait`, it raises `KeyInDoubt`, and nothing is stored.

        A job with `expires_at`, or else `expires_in`, is cancelled by `expire` if it has not
        started by then. No notice is taken of a `policy`. A job with a `rate` sets that of its
        lane, scheduled or not; of several the last. `InvalidSetting` if it has no lane.
        """

    async def insert_by_policy(self, job: NewJob) -> PolicyInserted:
        """Store a job that has a `policy`, in one step with what that does to others.

        A job whose id exists is not stored again, as by `insert`, and nothing else happens. Then,
        by its key, if a job of its task has that. Not started means here: never claimed. One
        that sleeps or waits for something has run already, although its attempt was given back.

        * "return": the result is that job, not created, unless it was stored `window` seconds ago
          or earlier: then the new one is stored, and the key is its.
        * "replace": if that job has not started, it is cancelled (`replaced_by`) and its place is
          free before the new one comes. In any case the new one is stored, and the key is its.
        * "debounce": if that job has not started, and has the same queue and lane, it gets
          arguments, meta and expiry of the new one, and the result is that job, not created. If it
          is scheduled its time is then that of the new one, but at most `max_wait` seconds after it
          was stored; one that is due is not put off any more. Otherwise as "replace".

        A job whose key went to a newer one keeps showing it; a rerun does not give it back.

        Then, if it is to be stored, is due, and has a lane in which it would have to wait, by
        `when_full`: "wait" stores it; "refuse" stores nothing and leaves the key alone; "replace"
        cancels all that wait in this lane, "cancel_running" also all that hold a place: those that
        run are asked to stop, as by `cancel`. The width of the lane is that of the new job.

        Of several callers at once one comes after the other. What they see of each other's keys in
        open transactions of callers is as in `insert`: it waits, up to 30 s, then `KeyInDoubt`.
        """


class TransactionalProducing(Protocol):
    """Taking jobs in as part of the caller's own transaction (PostgreSQL)."""

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in the open transaction of an asyncpg or psycopg connection or a SQLAlchemy
        session. They exist if and only if it commits. No lane is locked, so no other call waits.
        """
