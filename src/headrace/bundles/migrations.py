"""Alembic scripts of a bundle, run to the newest. Needs the extra `bundles`."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from headrace.bundles.bundle import Tables
from headrace.bundles.imports import folder_of
from headrace.bundles.tables import TablesAddress
from headrace.errors import InvalidSetting, MigrationNeeded, MissingDriver, SchemaTooNew

try:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.script.revision import RevisionError
    from alembic.util import CommandError
    from sqlalchemy import Connection, text
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
    from sqlalchemy.schema import CreateSchema
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'tables of bundles need {error.name}; install it: pip install "headrace[bundles]"'
    ) from error

HEAD = "head"


@dataclass(frozen=True, slots=True)
class TablesState:
    """How the tables of a bundle are: `version` None if there are none yet. `pending` are the
    scripts that are missing, in their order.
    """

    where: str
    version: str | None
    known: str | None
    pending: tuple[str, ...]


async def upgrade(
    engine: AsyncEngine, address: TablesAddress, tables: Tables, name: str
) -> list[str]:
    """Run the scripts that are missing, in one transaction that others wait for; return them."""
    scripts = _scripts(tables, name)
    async with _alone(engine, address, name) as connection:
        return await connection.run_sync(_upgrade, scripts, address, name)


async def read_state(
    engine: AsyncEngine, address: TablesAddress, tables: Tables, name: str
) -> TablesState:
    """Return the version of the tables. Changes nothing."""
    scripts = _scripts(tables, name)
    current: str | None = None
    if not _absent(address):
        async with engine.connect() as connection:
            current = await connection.run_sync(_current, address, name)
    pending = tuple(_missing(scripts, current, name))
    return TablesState(str(address), current, scripts.get_current_head(), pending)


async def check(engine: AsyncEngine, address: TablesAddress, tables: Tables, name: str) -> None:
    """Raise `MigrationNeeded` if scripts are missing."""
    state = await read_state(engine, address, tables, name)
    if state.pending:
        raise MigrationNeeded(
            f'the tables of bundle "{name}" in {state.where} lack {", ".join(state.pending)}; the '
            f"setting migrate is 'never'. Run `headrace migrate --bundle {name}`, by a user who may"
            " change the schema."
        )


async def script_of(engine: AsyncEngine, address: TablesAddress, tables: Tables, name: str) -> str:
    """Return the SQL that `upgrade` would run; empty if nothing is missing."""
    state = await read_state(engine, address, tables, name)
    if not state.pending:
        return ""
    scripts = _scripts(tables, name)
    written = io.StringIO()
    if address.postgres:
        from headrace.engine.postgres.connection.address import quoted  # noqa: PLC0415

        schema = quoted(address.schema or "")
        written.write(f"CREATE SCHEMA IF NOT EXISTS {schema};\n")
        written.write(f"SET search_path TO {schema}, public;\n\n")

    def steps(_: Any, context: MigrationContext) -> Any:
        return scripts._upgrade_revs(HEAD, state.version or "base")

    environment = EnvironmentContext(
        Config(), scripts, fn=steps, as_sql=True, starting_rev=state.version, destination_rev=HEAD
    )
    with environment:
        environment.configure(
            dialect_name="postgresql" if address.postgres else "sqlite",
            dialect_opts={"paramstyle": "named"},
            literal_binds=True,
            output_buffer=written,
            version_table=_version_table(name),
            version_table_schema=address.schema,
        )
        with environment.begin_transaction():
            environment.run_migrations()
    return written.getvalue()


def _scripts(tables: Tables, name: str) -> ScriptDirectory:
    folder = folder_of(tables.package)
    versions = folder / "versions"
    scripts = ScriptDirectory(folder, version_locations=[versions if versions.is_dir() else folder])
    heads = scripts.get_heads()
    if len(heads) != 1:
        raise InvalidSetting(
            f'bundle "{name}": the scripts in {tables.package} end in '
            f"{', '.join(heads) or 'nothing'}; there has to be one last script"
        )
    return scripts


def _version_table(name: str) -> str:
    return f"headrace_{name.replace('-', '_')}_version"


def _absent(address: TablesAddress) -> bool:
    """Whether there is no database file yet, which looking would make."""
    return address.path is not None and not address.path.exists()


@asynccontextmanager
async def _alone(
    engine: AsyncEngine, address: TablesAddress, name: str
) -> AsyncIterator[AsyncConnection]:
    """Yield a connection with a transaction that no other migration of this bundle runs beside."""
    async with engine.connect() as connection:
        if address.postgres:
            # Until the end of the transaction; others wait here and then find nothing missing.
            await connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
                {"name": f"headrace bundle {name}"},
            )
            await connection.execute(CreateSchema(address.schema or "", if_not_exists=True))
        else:
            # A script may make a table anew under its old name: its rows must not be deleted by
            # their parents. Cannot be said within a transaction.
            await connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield connection
            await connection.commit()
        except BaseException:
            await connection.rollback()
            raise
        finally:
            if not address.postgres:
                await connection.exec_driver_sql("PRAGMA foreign_keys=ON")


def _upgrade(
    connection: Connection, scripts: ScriptDirectory, address: TablesAddress, name: str
) -> list[str]:
    done = _missing(scripts, _current(connection, address, name), name)

    def steps(revision: Any, context: MigrationContext) -> Any:
        return scripts._upgrade_revs(HEAD, revision)

    environment = EnvironmentContext(Config(), scripts, fn=steps, destination_rev=HEAD)
    with environment:
        environment.configure(
            connection=connection,
            version_table=_version_table(name),
            version_table_schema=address.schema,
            render_as_batch=not address.postgres,
        )
        environment.run_migrations()
    return done


def _current(connection: Connection, address: TablesAddress, name: str) -> str | None:
    context = MigrationContext.configure(
        connection,
        opts={"version_table": _version_table(name), "version_table_schema": address.schema},
    )
    return context.get_current_revision()


def _missing(scripts: ScriptDirectory, current: str | None, name: str) -> list[str]:
    """Return the scripts after the current one, the first to run first."""
    try:
        found = [script.revision for script in scripts.iterate_revisions(HEAD, current or "base")]
    except (CommandError, RevisionError):
        raise SchemaTooNew(
            f'the tables of bundle "{name}" have version {current}, which this version of it does '
            "not know; upgrade its package here"
        ) from None
    return found[::-1]
