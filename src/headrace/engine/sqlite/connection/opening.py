"""Opening connections, and telling SQLite's errors in Headrace's words."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import time
from collections.abc import Sized

from headrace.engine.sqlite.connection.address import Address
from headrace.engine.sqlite.connection.lock_owner import lock_holder
from headrace.engine.sqlite.sql import migrations
from headrace.errors import (
    EngineError,
    EngineUnavailable,
    InvalidInput,
    SchemaTooNew,
    StorageFull,
)

OLDEST_LIBRARY = (3, 35, 0)
BUSY_SECONDS = 5.0
TURN_SECONDS = (0.0002, 0.0015)
APPLICATION = 1212437059  # "HDRC": tells a Headrace file from another program's database
SCHEMA_VERSION = max(number for number, _ in migrations())
SCHEMA_SETTLE_SECONDS = 30.0


def connect(address: Address, *, create: bool = True) -> sqlite3.Connection:
    """Open one connection with the settings that every connection has."""
    name = str(address)
    if not create and address.path is not None:
        name = f"{address.path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        name,
        uri=not create,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        cached_statements=256,
    )
    try:
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = memory")
        # A log that grew while a long read held it up shrinks again.
        connection.execute("PRAGMA journal_size_limit = 67108864")
        match address.synchronous:
            case "full":
                connection.execute("PRAGMA synchronous = full")
            case "normal":
                connection.execute("PRAGMA synchronous = normal")
            case _:
                connection.execute("PRAGMA synchronous = off")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def wait_by_turns(connection: sqlite3.Connection) -> None:
    """From now on `begin_writing` does the waiting on this connection."""
    connection.execute("PRAGMA busy_timeout = 0")


def begin_writing(connection: sqlite3.Connection, limit: float, wanted: Sized) -> bool:
    """Begin a write transaction as soon as no other process is in one. False: not yet, and somebody
    wants something else meanwhile.

    SQLite's own waiting sleeps up to 100 ms at a time, so under load the same process always wins.
    Transactions here take a few milliseconds: asking every millisecond or so is fair to all.
    """
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(random.uniform(*TURN_SECONDS))  # noqa: S311 - not for secrets
            if wanted:
                return False
        else:
            return True


def check_library() -> None:
    """Refuse a SQLite library that lacks what the statements use: RETURNING and JSON."""
    if sqlite3.sqlite_version_info < OLDEST_LIBRARY:
        wanted = ".".join(map(str, OLDEST_LIBRARY))
        raise EngineError(
            f"This Python has SQLite {sqlite3.sqlite_version}; Headrace needs {wanted} or newer. "
            "Use a newer Python build, or another engine."
        )
    probe = sqlite3.connect(":memory:")
    try:
        probe.execute("SELECT value FROM json_each('[]')").close()
    except sqlite3.OperationalError as error:
        raise EngineError(
            f"SQLite {sqlite3.sqlite_version} of this Python was built without JSON. "
            "Use another Python build, or another engine."
        ) from error
    finally:
        probe.close()


def prepare(connection: sqlite3.Connection, address: Address) -> None:
    """Bring a database to the current schema. Any number of processes may do this at once."""
    # The tables first: they and the mark come in one commit, so another process that makes them
    # between the two questions is not taken for another program.
    [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    if application != APPLICATION and tables:
        raise EngineError(
            f"{str(address)!r} is a database of another program. Name another file in HEADRACE_URL."
        )
    _check_version(connection, address)
    _use_write_ahead_log(connection)
    if _version(connection) < SCHEMA_VERSION:
        connection.execute("BEGIN EXCLUSIVE")
        try:
            _check_version(connection, address)
            # Read again under the lock: another process may have been first.
            current = _version(connection)
            for number, statements in migrations():
                if number > current:
                    for statement in statements:
                        connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    return int(version)


def _check_version(connection: sqlite3.Connection, address: Address) -> None:
    version = _version(connection)
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{str(address)!r} has schema version {version}; this Headrace knows up to "
            f"{SCHEMA_VERSION}. Upgrade Headrace here, or name another file in HEADRACE_URL."
        )


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # The busy timeout does not cover this change, so several first openers have to take turns.
    limit = time.monotonic() + SCHEMA_SETTLE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = wal").fetchall()
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(0.005)
        else:
            return


def _code(error: sqlite3.Error) -> int:
    # The low byte is the plain code; the rest tells details that vary with the version.
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_full(error: BaseException) -> bool:
    """Whether there was no room to write."""
    return isinstance(error, sqlite3.Error) and _code(error) == sqlite3.SQLITE_FULL


def translated(error: BaseException, address: Address) -> BaseException:
    """The error in Headrace's words, with the original as its cause."""
    found = _translation(error, address)
    if found is not error:
        found.__cause__ = error
    return found


def _translation(error: BaseException, address: Address) -> BaseException:
    if isinstance(error, (UnicodeEncodeError, OverflowError, sqlite3.DataError)):
        return InvalidInput(f"A value cannot be stored in SQLite: {error}. Nothing was changed.")
    if not isinstance(error, sqlite3.Error):
        return error
    kind, text = _WORDS.get(_code(error), (EngineError, "{error}."))
    reason = text.format(error=error, busy=BUSY_SECONDS, who=_who(address))
    return kind(f"The database {str(address)!r}: {reason}")


def _who(address: Address) -> str:
    holder = lock_holder(address.path)
    return "another process" if holder is None else f"process {holder}"


_WORDS: dict[int, tuple[type[EngineError], str]] = {
    sqlite3.SQLITE_FULL: (
        StorageFull,
        "no room to write ({error}). Nothing was written. Free disk space, or prune finished jobs.",
    ),
    sqlite3.SQLITE_BUSY: (
        EngineUnavailable,
        "{who} kept it locked for {busy:g} s ({error}). Try again; if it stays locked, let that "
        "process go on, or end it.",
    ),
    sqlite3.SQLITE_NOTADB: (
        EngineError,
        "not a SQLite database ({error}). Name another file in HEADRACE_URL.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        EngineError,
        "the file is damaged ({error}). Restore it from a backup, or name another file in "
        "HEADRACE_URL.",
    ),
    sqlite3.SQLITE_READONLY: (
        EngineError,
        "it cannot be written ({error}). Let this user write the file and its folder.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        EngineError,
        "it cannot be opened ({error}). Let this user read and write the file and its folder.",
    ),
    sqlite3.SQLITE_IOERR: (
        EngineUnavailable,
        "it cannot be read or written now ({error}). Check the disk.",
    ),
}
