"""Transactions of attempts. An attempt that was given up changes nothing.

Invariant: `attempts` has, for each job that writes, the highest token that has written. Each write
of a job raises it to its own token in the same transaction, or is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace import LeaseLost
from headrace_scanner.store.tables import ATTEMPTS


@dataclass(frozen=True, slots=True)
class Attempt:
    """Who writes: a job, and the token of its attempt."""

    job_id: str
    token: int


@asynccontextmanager
async def writing(
    engine: AsyncEngine, attempt: Attempt | None = None
) -> AsyncIterator[AsyncConnection]:
    """A transaction. Raises `LeaseLost` if a later attempt at the same job has written."""
    async with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # The driver would begin one that only reads, which cannot always become a writer.
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            if attempt is not None:
                await _check(connection, attempt)
            yield connection
            await connection.commit()
        except BaseException:
            await connection.rollback()
            raise


def insert_or(connection: AsyncConnection, table: sa.Table) -> Any:
    """Return an INSERT that can say what happens if the row is there."""
    if connection.dialect.name == "postgresql":
        return postgresql_insert(table)
    return sqlite_insert(table)


async def _check(connection: AsyncConnection, attempt: Attempt) -> None:
    statement = insert_or(connection, ATTEMPTS).values(
        job_id=attempt.job_id, token=attempt.token, updated_at=time()
    )
    newer = statement.excluded
    # PostgreSQL locks the row: a later attempt waits for this transaction, and so does this for it.
    changed = await connection.execute(
        statement.on_conflict_do_update(
            index_elements=["job_id"],
            set_={"token": newer.token, "updated_at": newer.updated_at},
            where=ATTEMPTS.c.token <= newer.token,
        )
    )
    if not changed.rowcount:
        raise LeaseLost(f"a later attempt at job {attempt.job_id} has begun")
