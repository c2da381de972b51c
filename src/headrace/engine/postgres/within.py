"""Calling our insert function on a connection that belongs to the caller."""

from __future__ import annotations

import sys
from typing import Any

import asyncpg

from headrace.engine.postgres.link import Rows
from headrace.errors import InvalidInput

ACCEPTED = (
    "an asyncpg connection, a psycopg 3 connection (async or not), or a SQLAlchemy session or "
    "connection (async or not) on PostgreSQL"
)
_NO_TRANSACTION = (
    "{0} is not in a transaction, so the jobs would be stored at once whatever happens next; "
    "begin a transaction first, or enqueue without the connection"
)


async def call_within(connection: Any, schema: str, offset: float, jobs: str) -> Rows:
    """Run `insert_jobs_within` and answer its rows. `schema` is checked and quoted.

    The function is named with its schema, because the search path here is the caller's.
    """
    function = f"{schema}.insert_jobs_within"
    if isinstance(connection, (asyncpg.Connection, asyncpg.pool.PoolConnectionProxy)):
        if not connection.is_in_transaction():
            raise InvalidInput(_NO_TRANSACTION.format("the asyncpg connection"))
        rows: Rows = await connection.fetch(
            f"SELECT * FROM {function}($1, $2)",  # noqa: S608 - a checked schema
            offset,
            jobs,
        )
        return rows
    match _driver(connection):
        case "psycopg":
            return await _psycopg(connection, function, offset, jobs)
        case "sqlalchemy":
            return await _sqlalchemy(connection, function, offset, jobs)
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise InvalidInput(f"conn= is a {kind}, which cannot take jobs; use {ACCEPTED}")


def _driver(connection: Any) -> str:
    """The package that a connection comes from, also if its class is the caller's own."""
    for cls in type(connection).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in ("psycopg", "sqlalchemy"):
            return package
    return ""


async def _psycopg(connection: Any, function: str, offset: float, jobs: str) -> Rows:
    psycopg = sys.modules["psycopg"]
    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise InvalidInput(_NO_TRANSACTION.format("the psycopg connection (autocommit)"))
    statement = f"SELECT * FROM {function}(%s::float8, %s::text)"  # noqa: S608 - a checked schema
    cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
    if isinstance(connection, psycopg.AsyncConnection):
        async with cursor:
            await cursor.execute(statement, (offset, jobs))
            return list(await cursor.fetchall())
    with cursor:
        cursor.execute(statement, (offset, jobs))
        return list(cursor.fetchall())


async def _sqlalchemy(connection: Any, function: str, offset: float, jobs: str) -> Rows:
    bound = connection if hasattr(connection, "dialect") else connection.get_bind()
    if bound.dialect.name != "postgresql":
        raise InvalidInput(
            f"conn= is a SQLAlchemy session on {bound.dialect.name}, not on PostgreSQL; "
            "use one on the database of HEADRACE_URL"
        )
    statement = sys.modules["sqlalchemy"].text(
        f"SELECT * FROM {function}(CAST(:shift AS double precision), CAST(:jobs AS text))"  # noqa: S608 - a checked schema
    )
    result = connection.execute(statement, {"shift": offset, "jobs": jobs})
    if hasattr(result, "__await__"):
        result = await result
    return list(result.all())
