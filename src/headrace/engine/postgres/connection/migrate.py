"""Bringing the schema up to date.

A migration changes tables. It is applied once, whole, by the first program that knows it. Programs
that do not know it go on working, unless it states a `min_program` that they do not reach.

Functions are not part of migrations: each program installs its own set (see `sql.py`). A set is
dropped by the migration that refuses the programs it belongs to.
"""

from __future__ import annotations

import msgspec

from headrace.engine.postgres.connection.connection import COMMAND_SECONDS, Link
from headrace.engine.postgres.connection.connector import Connection
from headrace.engine.postgres.connection.errors import not_permitted
from headrace.engine.postgres.sql import FunctionSet, function_set, migrations, sql
from headrace.engine.schema import check_program
from headrace.engine.sql_files import Migration
from headrace.errors import EngineError
from headrace.model.views import SchemaState
from headrace.version import __version__

KNOWN = migrations()
NEWEST = KNOWN[-1].number
FUNCTIONS = function_set()
# The first version with a table of function sets.
FIRST_WITH_SETS = 11
OLDEST_SERVER = 15
# New indexes on a large history take their time.
LONGEST_SECONDS = 3600.0


class MigrationStep(msgspec.Struct, frozen=True):
    """A statement of a migration, with the values of its parameters."""

    statement: str
    values: tuple[int | str, ...] = ()

    def as_script(self) -> str:
        """Return the statement with its values in place, as a person would run it."""
        text = self.statement.strip()
        for number, value in enumerate(self.values, start=1):
            shown = str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
            text = text.replace(f"${number}", shown)
        return text if text.endswith(";") else f"{text};"


class MigrationPlan(msgspec.Struct, frozen=True):
    """What a schema is, and what has to be done to it: to its tables, then to its functions."""

    version: int
    min_program: int
    pending: tuple[str, ...]
    tables: tuple[MigrationStep, ...] = ()
    functions: tuple[MigrationStep, ...] = ()

    def state(self, script: str = "") -> SchemaState:
        """Return the state of the schema; `script` does what is pending."""
        return SchemaState(
            version=self.version,
            min_program=self.min_program,
            known=NEWEST,
            pending=self.pending,
            script=script,
        )


async def schema_state(link: Link) -> SchemaState:
    """Return what the schema is, and what `migrate` would do. Changes nothing."""

    async def read(connection: Connection) -> SchemaState:
        _check_server(connection, link)
        async with link.with_settings(connection):
            plan = await _plan(connection, link)
        head = (
            MigrationStep("BEGIN"),
            MigrationStep(_path(link)),
            MigrationStep(sql.migrate_lock, (link.address.schema,)),
        )
        steps = (*plan.tables, *plan.functions)
        steps = (*head, *steps, MigrationStep("COMMIT")) if steps else ()
        return plan.state("\n\n".join(step.as_script() for step in steps))

    return await link.repeated(read)


async def migrate(link: Link, *, allowed: bool = True) -> None:
    """Apply what is missing. Any number of processes may do it at once, and others may be at work:
    one that waits for a table that they use may have to begin again.

    Nothing is changed, and no right to change anything is needed, if nothing is missing.
    """

    async def apply(connection: Connection) -> None:
        _check_server(connection, link)
        while (await _checked_plan(connection, link, allowed=allowed)).pending:
            async with link.transaction(connection):
                # Whatever is in front of the server: no table may be made anywhere else.
                await connection.execute(_path(link))
                # One process at a time; the others find it done.
                await connection.execute(sql.migrate_lock, link.address.schema)
                plan = await _checked_plan(connection, link, allowed=allowed, next_only=True)
                # Others cannot use a table that is altered until this is committed. So functions,
                # of which there are many, and each migration have a transaction of their own.
                for step in plan.tables or plan.functions:
                    await connection.execute(step.statement, *step.values)

    await link.repeated(apply, timeout=LONGEST_SECONDS)


def _path(link: Link) -> str:
    return f"SET LOCAL search_path = {link.address.quoted_schema}, pg_temp"


async def _checked_plan(
    connection: Connection, link: Link, *, allowed: bool, next_only: bool = False
) -> MigrationPlan:
    async with link.with_settings(connection):
        plan = await _plan(connection, link, next_only=next_only)
    check_program(
        f"PostgreSQL at {link.address.shown}: schema {link.address.schema!r}",
        plan.state(),
        allowed=allowed,
        elsewhere="another schema",
    )
    return plan


async def _plan(connection: Connection, link: Link, *, next_only: bool = False) -> MigrationPlan:
    schema = link.address.schema
    [found] = await connection.fetch(
        sql.what_exists, schema, list(FUNCTIONS.installed), timeout=COMMAND_SECONDS
    )
    if not found["usable"]:
        raise EngineError(not_permitted(link.address, "USAGE is missing"))
    version = min_program = 0
    if found["migrated"]:
        [(version, min_program)] = await connection.fetch(sql.schema_version)
    missing = [each for each in KNOWN if each.number > version]
    pending = [f"migration {each.name}" for each in missing]
    if found["functions"] < len(FUNCTIONS.installed):
        pending.append(f"functions {FUNCTIONS.hash}")
    if not pending or min_program > NEWEST:
        return MigrationPlan(version, min_program, tuple(pending))
    if next_only and version > 0:
        del missing[1:]
    steps: list[MigrationStep] = []
    if version == 0:
        if not await connection.fetchval(sql.schema_exists, schema):
            steps.append(MigrationStep(f"CREATE SCHEMA {link.address.quoted_schema}"))
        if not found["migrated"]:
            steps.append(MigrationStep(sql.create_migration))
    for each in missing:
        steps += _steps_of(each)
    stated = max((each.min_program or 0 for each in missing), default=0)
    if stated > min_program and version >= FIRST_WITH_SETS:
        for row in await connection.fetch(sql.refused_functions, stated, FUNCTIONS.hash):
            steps.append(MigrationStep(f"DROP FUNCTION {row['function']}"))
        steps.append(MigrationStep(sql.forget_function_sets, (stated, FUNCTIONS.hash)))
    install = _install(FUNCTIONS)
    if missing and found["functions"] == len(FUNCTIONS.installed):
        steps.append(install[-1])  # the same functions, in a newer schema
    return MigrationPlan(version, min_program, tuple(pending), tuple(steps), tuple(install))


def _steps_of(migration: Migration) -> list[MigrationStep]:
    steps = [
        MigrationStep(migration.text),
        MigrationStep(sql.add_migration, (migration.number,)),
    ]
    if migration.min_program is not None:
        values = (migration.number, migration.min_program)
        steps.append(MigrationStep(sql.raise_min_program, values))
    return steps


def _install(functions: FunctionSet) -> list[MigrationStep]:
    noted = MigrationStep(sql.add_function_set, (functions.hash, NEWEST, __version__))
    return [*map(MigrationStep, functions.scripts), noted]


def _check_server(connection: Connection, link: Link) -> None:
    server = connection.get_server_version()
    if server.major < OLDEST_SERVER:
        raise EngineError(
            f"PostgreSQL at {link.address.shown} has version {server.major}; Headrace needs "
            f"{OLDEST_SERVER} or newer. Upgrade the server."
        )
