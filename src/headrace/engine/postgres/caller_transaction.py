"""Calling our insert function on a connection that belongs to the caller."""

from __future__ import annotations

import sys
from typing import Any

import asyncpg

from headrace.engine.postgres.connection.blocking import run_in_thread
from headrace.engine.postgres.connection.connection import Rows
from headrace.engine.postgres.sql import function_name
from headrace.errors import InvalidInput

ACCEPTED = (
    "an asyncpg connection, a psycopg 3 connection (async or not), or a SQLAlchemy session or "
    "connection (async or not) on PostgreSQL"
)
_NO_TRANSACTION = (
    "{0} is not in a transaction, so the jobs would be stored at once whatever happens next; "
    "begin a transaction first, or enqueue without the connection"
)
_AUTOCOMMIT = (
    "conn= is a SQLAlchemy session or connection in AUTOCOMMIT, so the jobs would be stored at "
    "once whatever happens next; use one with another isolation level, or enqueue without conn="
)
_SCOPED = (
    "conn= is a SQLAlchemy scoped_session, which is another session in every thread; give the "
    "session itself, as in conn=session()"
)


async def call_within(connection: Any, schema: str, offset: float, jobs: str) -> Rows:
    """Run `insert_jobs_within` and return its rows. `schema` is checked and quoted.

    The function is named with its schema, because the search path here is the caller's.
    """
    function = f"{schema}.{function_name('insert_jobs_within')}"
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
    # In a schema's name, too, the driver would take it for a parameter.
    named = function.replace("%", "%%")
    statement = f"SELECT * FROM {named}(%s::float8, %s::text)"  # noqa: S608 - a checked schema
    cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
    if isinstance(connection, psycopg.AsyncConnection):
        async with cursor:
            await cursor.execute(statement, (offset, jobs))
            return list(await cursor.fetchall())

    def call() -> Rows:
        with cursor:
            cursor.execute(statement, (offset, jobs))
            return list(cursor.fetchall())

    return await run_in_thread(call)


async def _sqlalchemy(connection: Any, function: str, offset: float, jobs: str) -> Rows:
    if type(connection).__name__ == "scoped_session":
        raise InvalidInput(_SCOPED)
    bound = connection if hasattr(connection, "dialect") else connection.get_bind()
    if bound.dialect.name != "postgresql":
        raise InvalidInput(
            f"conn= is a SQLAlchemy session on {bound.dialect.name}, not on PostgreSQL; "
            "use one on the database of HEADRACE_URL"
        )
    named = function.replace(":", "\\:")
    statement = sys.modules["sqlalchemy"].text(
        f"SELECT * FROM {named}(CAST(:shift AS double precision), CAST(:jobs AS text))"  # noqa: S608 - a checked schema
    )

    def call(blocking: Any) -> Rows:
        """On a session or connection, of which an asynchronous one has one, too."""
        held = blocking if hasattr(blocking, "dialect") else blocking.connection()
        # Of the driver's connection: an isolation level may come from there, from the engine, or
        # from options of either, and SQLAlchemy begins a transaction in name whatever it is.
        if held.connection.dbapi_connection.autocommit:
            raise InvalidInput(_AUTOCOMMIT)
        return list(held.execute(statement, {"shift": offset, "jobs": jobs}).all())

    if hasattr(connection, "run_sync"):
        rows: Rows = await connection.run_sync(call)
        return rows
    return await run_in_thread(lambda: call(connection))
