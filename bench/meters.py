"""What a stretch of work cost, read from outside the engine: no timing, no guessing.

PostgreSQL counts transactions and WAL bytes, Redis commands and bytes of its append-only file. For
SQLite the write-ahead log is read: a frame with a size marks the end of a transaction.
"""

from __future__ import annotations

import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis

_WAL_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">6I")
ALONE_SECONDS = 5.0


@dataclass
class Cost:
    """`transactions` are commits, or calls of a script; `operations` what the server did inside of
    them where it counts that; `written` is bytes of the log.
    """

    transactions: int = 0
    operations: int = 0
    written: int = 0

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.transactions - other.transactions,
            self.operations - other.operations,
            self.written - other.written,
        )


@contextmanager
def metered(url: str) -> Iterator[Cost]:
    """Count what happens in a store inside of the block; the answer is filled in at its end.

    Connections that were opened inside have to be closed inside: PostgreSQL tells the counts of a
    connection when it ends.
    """
    cost = Cost()
    match urlsplit(url).scheme:
        case "sqlite":
            read = _sqlite
        case "redis":
            read = _redis
        case _:
            read = _postgres
    with read(url) as look:
        before = look()
        yield cost
        found = look() - before
    cost.transactions, cost.operations, cost.written = (
        found.transactions,
        found.operations,
        found.written,
    )


@contextmanager
def _postgres(url: str) -> Iterator[Any]:
    server, _, database = url.partition("?")[0].rpartition("/")
    # From another database, so that looking does not count.
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:

        def look() -> Cost:
            _until_alone(connection, database)
            row = connection.execute(
                "SELECT xact_commit + xact_rollback,"
                " tup_inserted + tup_updated + tup_deleted,"
                " (pg_current_wal_insert_lsn() - '0/0')::bigint"
                " FROM pg_stat_database WHERE datname = %s",
                [database],
            ).fetchone()
            assert row is not None
            return Cost(*row)

        yield look


def _until_alone(connection: psycopg.Connection[Any], database: str) -> None:
    """A connection that was closed tells its counts when its server process ends, a bit later."""
    end = time.monotonic() + ALONE_SECONDS
    while time.monotonic() < end:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
            [database],
        ).fetchone()
        if row == (0,):
            return
        time.sleep(0.01)


@contextmanager
def _redis(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url.partition("?")[0]) as client:

        def look() -> Cost:
            stats: Any = client.info("commandstats")
            calls = {name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()}
            scripts = calls.pop("evalsha", 0)
            size: Any = client.info("persistence")
            return Cost(scripts, sum(calls.values()), size.get("aof_current_size", 0))

        yield look


@contextmanager
def _sqlite(url: str) -> Iterator[Any]:
    path = Path(url.removeprefix("sqlite:///").partition("?")[0])
    log = path.with_name(path.name + "-wal")
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # A reader from before keeps the log from beginning anew, so that it holds everything.
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        yield lambda: _read_log(log)
    finally:
        connection.close()


def _read_log(log: Path) -> Cost:
    """Transactions, pages and bytes of a write-ahead log."""
    data = log.read_bytes() if log.exists() else b""
    if len(data) < _WAL_HEADER.size:
        return Cost()
    _, _, page_size, _, *salts, _, _ = _WAL_HEADER.unpack_from(data)
    step = _FRAME_HEADER.size + page_size
    commits = frames = 0
    for at in range(_WAL_HEADER.size, len(data) - step + 1, step):
        _, size_after, *frame_salts, _, _ = _FRAME_HEADER.unpack_from(data, at)
        if frame_salts != salts:
            break  # left over from before the log began anew
        frames += 1
        commits += size_after > 0
    return Cost(commits, frames, frames * step)
