"""Inserting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headrace.model.job import Inserted, NewJob
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
        """


class TransactionalProducing(Protocol):
    """Taking jobs in as part of the caller's own transaction (PostgreSQL)."""

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in the open transaction of an asyncpg or psycopg connection or a SQLAlchemy
        session. They exist if and only if it commits. No lane is locked, so no other call waits.
        """
