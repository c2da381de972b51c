"""Bringing a file to the schema that this program knows.

`PRAGMA user_version` is the lowest version that a program must know to use the file; programs from
before the table `migration` obey it, too. That table has the versions that were applied.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator

from headrace.engine.schema import check_program
from headrace.engine.sqlite.connection import forks
from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.opening import (
    check_library,
    connect,
    error_code,
    translated,
)
from headrace.engine.sqlite.sql import migrations, statements
from headrace.errors import EngineError, MigrationNeeded
from headrace.model.views import SchemaState

APPLICATION = 1212437059  # "HDRC": tells a Headrace file from another program's database
KNOWN = migrations()
NEWEST = KNOWN[-1].number
# The migration that makes the table of migrations.
FIRST_NOTED = 2
SCHEMA_SETTLE_SECONDS = 30.0


def schema_state(address: SqliteAddress) -> SchemaState:
    """Return what the schema of a file is. Changes nothing, and makes no file."""
    if address.path is None:
        # It is made, whole, by the engine that is opened on it.
        return SchemaState(version=NEWEST, min_program=NEWEST, known=NEWEST)
    address.check_folder()
    if not address.path.exists():
        return _state(0, 0)
    with _connected(address, create=False) as connection:
        _check_application(connection, address)
        return _state(*_versions(connection))


def migrate(address: SqliteAddress) -> None:
    """Bring a file up to date, and make it if there is none."""
    if address.path is not None:
        address.check_folder()
        with _connected(address, create=True) as connection:
            prepare(connection, address)


def check_exists(address: SqliteAddress) -> None:
    """Refuse a file that would have to be made."""
    if address.path is not None and not address.path.exists():
        raise MigrationNeeded(
            f"There is no database {str(address)!r}, and the setting migrate is 'never'. Run "
            "`headrace migrate`, or name another file in HEADRACE_URL."
        )


@contextlib.contextmanager
def _connected(address: SqliteAddress, *, create: bool) -> Iterator[sqlite3.Connection]:
    """A connection for the thread that asks, while nobody forks."""
    try:
        with forks.held_up():
            check_library()
            with contextlib.closing(connect(address, create=create)) as connection:
                yield connection
    except sqlite3.Error as error:
        raise translated(error, address) from error


def prepare(
    connection: sqlite3.Connection, address: SqliteAddress, *, migrate: bool = True
) -> None:
    """Bring a database to the current schema. Any number of processes may do this at once."""
    _check_application(connection, address)
    may = migrate or address.path is None
    pending = _check(connection, address, migrate=may)
    _use_write_ahead_log(connection)
    if pending:
        connection.execute("BEGIN EXCLUSIVE")
        try:
            # Read again under the lock: another process may have been first.
            if _check(connection, address, migrate=may):
                version, _ = _versions(connection)
                for statement in _missing_statements(version):
                    connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the newest version that was applied."""
    return _versions(connection)[0]


def _check(connection: sqlite3.Connection, address: SqliteAddress, *, migrate: bool) -> bool:
    """Return whether something is missing; raise if this program must not go on."""
    state = _state(*_versions(connection))
    check_program(
        f"The database {str(address)!r}",
        state,
        allowed=migrate,
        elsewhere="another file in HEADRACE_URL",
    )
    return bool(state.pending)


def _state(version: int, min_program: int) -> SchemaState:
    script = ["BEGIN EXCLUSIVE;", *map(str.strip, _missing_statements(version)), "COMMIT;"]
    pending = tuple(f"migration {each.name}" for each in KNOWN if each.number > version)
    return SchemaState(
        version=version,
        min_program=min_program,
        known=NEWEST,
        pending=pending,
        script="\n\n".join(script) if pending else "",
    )


def _missing_statements(version: int) -> list[str]:
    found: list[str] = []
    for each in KNOWN:
        if each.number > version:
            found += statements(each.text)
            if each.number >= FIRST_NOTED:
                found.append(f"INSERT INTO migration (version) VALUES ({each.number:d});")  # noqa: S608
            if each.min_program is not None:
                found.append(f"PRAGMA user_version = {each.min_program:d};")
    return found


def _versions(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the newest version that was applied, and the lowest that a program must know."""
    [(min_program,)] = connection.execute("PRAGMA user_version").fetchall()
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migration'").fetchall():
        return min_program, min_program
    [(version,)] = connection.execute("SELECT max(version) FROM migration").fetchall()
    return version, min_program


def _check_application(connection: sqlite3.Connection, address: SqliteAddress) -> None:
    # The tables first: they and the mark come in one commit, so another process that makes them
    # between the two questions is not taken for another program.
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    if application != APPLICATION and tables:
        raise EngineError(
            f"{str(address)!r} is a database of another program. Name another file in HEADRACE_URL."
        )


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # The busy timeout does not cover this change, so several first openers have to take turns.
    limit = time.monotonic() + SCHEMA_SETTLE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = wal").fetchall()
        except sqlite3.OperationalError as error:
            if error_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(0.005)
        else:
            return
