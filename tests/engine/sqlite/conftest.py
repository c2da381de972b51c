"""What tests of the SQLite engine share: an open engine on a file, and a look behind it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.connection.writer import WriterThread
from headrace.engine.sqlite.engine import SqliteEngine

Maker = Callable[[str], Awaitable[SqliteEngine]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database of a test is."""
    return tmp_path / "jobs.db"


@pytest.fixture
async def open_url() -> AsyncIterator[Maker]:
    """Opens engines, and closes them after the test."""
    opened: list[SqliteEngine] = []

    async def maker(url: str) -> SqliteEngine:
        engine = SqliteEngine(url, clock=Clock())
        await engine.open()
        opened.append(engine)
        return engine

    yield maker
    for engine in opened:
        await engine.close()


@pytest.fixture
async def sqlite_engine(open_url: Maker, path: Path) -> AsyncIterator[SqliteEngine]:
    """An engine on an empty file; its invariants must hold in the end."""
    engine = await open_url(f"sqlite:///{path}")
    yield engine
    assert await engine.audit() == []


@pytest.fixture
def behind(sqlite_engine: SqliteEngine, path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to the same file, as another program would have."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    yield connection
    connection.close()


def writer_of(engine: SqliteEngine) -> WriterThread:
    """The thread that owns the write connection."""
    assert engine._writer is not None
    return engine._writer


async def on_writer(engine: SqliteEngine, statement: str) -> None:
    """Run a statement on the engine's own write connection."""

    def operation(transaction: Transaction) -> None:
        transaction.connection.execute(statement)

    await writer_of(engine).run(operation)
