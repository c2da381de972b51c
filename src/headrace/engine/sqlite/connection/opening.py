"""Opening connections, and telling SQLite's errors in Headrace's words."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.lock_owner import lock_holder
from headrace.errors import (
    EngineError,
    EngineUnavailable,
    InvalidInput,
    StorageFull,
)

OLDEST_LIBRARY = (3, 35, 0)
BUSY_SECONDS = 5.0
# The umask takes away more.
FILE_MODE = 0o660
_making = threading.Lock()


def _renew_lock() -> None:
    # A thread that had it at the fork is not in the child.
    global _making  # noqa: PLW0603
    _making = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def connect(address: SqliteAddress, *, create: bool = True) -> sqlite3.Connection:
    """Open one connection with the settings that every connection has."""
    name = str(address)
    if create and address.path is not None:
        make_private(address.path)
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


def make_private(path: Path) -> None:
    """Make an empty file, if there is none, that only its owner can read, or its group if the umask
    says so. SQLite would make one for everybody. What it keeps beside a file has the mode of that.
    """
    # A file that is there is never opened: closing it again would end all locks that this process
    # has on it. One at a time, so that none is closed that another thread has opened since.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    # What cannot be made here is told by SQLite in a moment.
    with _making, contextlib.suppress(OSError):
        os.close(os.open(path, flags, FILE_MODE))


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


def error_code(error: sqlite3.Error) -> int:
    # The low byte is the plain code; the rest tells details that vary with the version.
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_full(error: BaseException) -> bool:
    """Whether there was no room to write."""
    return isinstance(error, sqlite3.Error) and error_code(error) == sqlite3.SQLITE_FULL


def translated(error: BaseException, address: SqliteAddress) -> BaseException:
    """The error in Headrace's words, with the original as its cause."""
    found = _translation(error, address)
    if found is not error:
        found.__cause__ = error
    return found


def _translation(error: BaseException, address: SqliteAddress) -> BaseException:
    if isinstance(error, (UnicodeEncodeError, OverflowError, sqlite3.DataError)):
        return InvalidInput(f"A value cannot be stored in SQLite: {error}. Nothing was changed.")
    if not isinstance(error, sqlite3.Error):
        return error
    kind, text = _WORDS.get(error_code(error), (EngineError, "{error}."))
    reason = text.format(error=error, busy=BUSY_SECONDS, who=_who(address))
    return kind(f"The database {str(address)!r}: {reason}")


def _who(address: SqliteAddress) -> str:
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
