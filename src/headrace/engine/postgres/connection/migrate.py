"""Bringing the schema up to date.

A migration is applied once, whole, by whoever comes first. Functions are part of migrations: a
later one may replace a function by one of the same name and meaning, and adds a new name for
anything else, so that programs of an earlier version go on working beside newer ones.
"""

from __future__ import annotations

from headrace.engine.postgres.connection.connection import COMMAND_SECONDS, Connection, Link
from headrace.engine.postgres.sql import migrations, query
from headrace.errors import EngineError, SchemaTooNew

KNOWN = migrations()
NEWEST = KNOWN[-1][0]
OLDEST_SERVER = 15
# New indexes on a large history take their time.
LONGEST_SECONDS = 3600.0


async def migrate(link: Link) -> int:
    """Apply what is missing and answer the version. Any number of processes may do it at once, and
    others may be at work: whoever waits for a table that they use may have to begin again.
    """

    async def apply(connection: Connection) -> int:
        _check_server(connection, link)
        version = await _version(connection, link)
        if version < NEWEST:
            async with connection.transaction():
                await _apply_missing(connection, link)
        return NEWEST

    return await link.repeated(apply, timeout=LONGEST_SECONDS)


async def _apply_missing(connection: Connection, link: Link) -> None:
    # One process at a time; the others find it done.
    await connection.execute(query("migrate_lock"), link.address.schema)
    version = await _version(connection, link)
    if version == 0:
        if not await connection.fetchval(query("schema_exists"), link.address.schema):
            await connection.execute(f"CREATE SCHEMA {link.address.quoted_schema}")
        await connection.execute(query("create_migration"))
    for number, script in KNOWN:
        if number > version:
            await connection.execute(script)
            await connection.execute(query("add_migration"), number)


def _check_server(connection: Connection, link: Link) -> None:
    server = connection.get_server_version()
    if server.major < OLDEST_SERVER:
        raise EngineError(
            f"PostgreSQL at {link.address.shown} has version {server.major}; Headrace needs "
            f"{OLDEST_SERVER} or newer. Upgrade the server."
        )


async def _version(connection: Connection, link: Link) -> int:
    """The version of the schema, 0 if there is none."""
    if not await connection.fetchval(
        query("migration_exists"), link.address.schema, timeout=COMMAND_SECONDS
    ):
        return 0
    version: int = await connection.fetchval(query("newest_migration"))
    if version > NEWEST:
        raise SchemaTooNew(
            f"PostgreSQL at {link.address.shown}: schema {link.address.schema!r} has version "
            f"{version}, and this Headrace knows versions up to {NEWEST}. Upgrade Headrace here, "
            "or use another schema."
        )
    return version
