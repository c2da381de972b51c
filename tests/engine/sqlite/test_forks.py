"""Forks of a process that uses SQLite: no connection and no lock of it is carried over."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headrace.sync
from headrace.engine.sqlite.connection import forks
from headrace.engine.sqlite.connection.opened_file import OpenedFile
from headrace.engine.sqlite.connection.opening import BUSY_SECONDS
from headrace.engine.sqlite.connection.thread import ConnectionThread, Transaction
from headrace.engine.sqlite.connection.writer import WriterThread, begin_writing
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.errors import EngineError, EngineUnavailable
from tests.app.conftest import make_app
from tests.engine.sqlite.conftest import Maker, writer_of
from tests.support.forks import LIMIT, forked
from tests.support.verbs import enqueue


@pytest.fixture
def jobs(path: Path) -> Iterator[headrace.sync.App]:
    """An open App on a file."""
    jobs = headrace.sync.wrap(make_app(f"sqlite:///{path}"))
    jobs.open()
    yield jobs
    jobs.close()


def threads_of(jobs: headrace.sync.App) -> tuple[ConnectionThread, ConnectionThread]:
    engine = jobs.app.engine
    assert isinstance(engine, SqliteEngine)
    assert engine._reader is not None
    return writer_of(engine), engine._reader


@contextmanager
def busy(thread: ConnectionThread, seconds: float) -> Iterator[threading.Event]:
    """A thread is inside a transaction for so long, or until the event is set."""
    began, enough = threading.Event(), threading.Event()

    def work(transaction: Transaction) -> None:
        transaction.connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        began.set()
        enough.wait(seconds)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(thread.run_blocking, work)
        assert began.wait(LIMIT)
        try:
            yield enough
        finally:
            enough.set()
            done.result(LIMIT)


def add(jobs: headrace.sync.App) -> str:
    return jobs.enqueue("add", {"a": 1, "b": 1}).id


@pytest.mark.parametrize("which", ["writer", "reader"])
def test_a_child_has_no_part_in_a_transaction_of_its_parent(
    jobs: headrace.sync.App, which: str
) -> None:
    thread = threads_of(jobs)[which == "reader"]
    with busy(thread, 0.3):
        assert forked(lambda: add(jobs)) == 0
    add(jobs)
    assert len(jobs.list().jobs) == 2


def test_children_are_forked_while_threads_enqueue(jobs: headrace.sync.App) -> None:
    enough = threading.Event()

    def enqueue_on() -> int:
        made = 0
        while not enough.is_set():
            add(jobs)
            made += 1
        return made

    with ThreadPoolExecutor(6) as pool:
        made = [pool.submit(enqueue_on) for _ in range(6)]
        try:
            assert [forked(lambda: add(jobs)) for _ in range(8)] == [0] * 8
        finally:
            enough.set()
        total = sum(each.result(LIMIT) for each in made) + 8
    assert sum(queue.ready for queue in jobs._run(jobs.app.engine.queues())) == total


def test_a_parent_that_closes_leaves_the_log_to_its_child(
    jobs: headrace.sync.App, path: Path
) -> None:
    add(jobs)
    opened, opening = os.pipe()
    closed, closing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(closing)
            add(jobs)
            os.write(opening, b".")
            os.read(closed, 1)
            add(jobs)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(opening)
    assert os.read(opened, 1) == b"."
    jobs.close()
    os.close(closing)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(opened)
    os.close(closed)
    with sqlite3.connect(path) as behind:
        assert behind.execute("SELECT count(*) FROM job").fetchall() == [(3,)]
    behind.close()


def test_a_fork_does_not_wait_for_ever_and_the_child_is_told(
    jobs: headrace.sync.App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(forks, "REST_SECONDS", 0.1)

    def refused() -> None:
        with pytest.raises(EngineUnavailable, match="was forked while its parent was busy"):
            add(jobs)

    with caplog.at_level(logging.WARNING), busy(threads_of(jobs)[0], LIMIT):
        assert forked(refused) == 0
        # What the child cannot have, its own children cannot have either.
        assert forked(lambda: forked(refused) and os._exit(1)) == 0
    assert "the child refuses to use SQLite" in caplog.text
    add(jobs)
    assert len(jobs.list().jobs) == 1
    assert forked(lambda: add(jobs)) == 0


def test_a_fork_does_not_wait_for_another_program_that_writes(
    jobs: headrace.sync.App, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = threading.Event()

    def waiting(*given: Any) -> bool:
        waits.set()
        return begin_writing(*given)

    monkeypatch.setattr("headrace.engine.sqlite.connection.writer.begin_writing", waiting)
    behind = sqlite3.connect(path, isolation_level=None)
    behind.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(add, jobs)
        assert waits.wait(LIMIT)
        began = time.monotonic()
        assert forked(lambda: None) == 0
        took = time.monotonic() - began
        behind.execute("ROLLBACK")
        assert made.result(LIMIT)
    behind.close()
    assert took < BUSY_SECONDS / 2


def test_jobs_in_memory_outlive_a_fork() -> None:
    jobs = headrace.sync.wrap(make_app("sqlite://"))
    made = add(jobs)
    assert forked(lambda: None) == 0
    assert jobs.get(made).id == made
    jobs.close()


async def test_a_callback_of_the_loop_may_fork(sqlite_engine: SqliteEngine) -> None:
    made = [asyncio.ensure_future(enqueue(sqlite_engine)) for _ in range(3)]
    codes: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: codes.append(forked(lambda: None)))
    ids = await asyncio.gather(*made)
    assert codes == [0]
    assert len(await sqlite_engine.get(ids)) == 3


async def test_several_threads_may_fork_at_once(sqlite_engine: SqliteEngine) -> None:
    codes = await asyncio.gather(*(asyncio.to_thread(forked, lambda: None) for _ in range(4)))
    assert codes == [0] * 4
    await enqueue(sqlite_engine)


async def test_a_listener_hears_what_others_stored_during_a_fork(
    sqlite_engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = asyncio.Event()
    reopen = WriterThread._reopen

    def meanwhile(self: WriterThread, file: OpenedFile) -> None:
        monkeypatch.undo()
        asyncio.run(_enqueue_elsewhere(path))
        reopen(self, file)

    end = await sqlite_engine.listen(heard.set, lambda job_id: None)
    monkeypatch.setattr(WriterThread, "_reopen", meanwhile)
    assert await asyncio.to_thread(forked, lambda: None) == 0
    await asyncio.wait_for(heard.wait(), LIMIT)
    end()


async def _enqueue_elsewhere(path: Path) -> None:
    engine = SqliteEngine(f"sqlite:///{path}", clock=headrace.Clock())
    await engine.open()
    await enqueue(engine)
    await engine.close()


async def test_a_file_that_is_gone_after_a_fork_is_told_and_used_when_it_is_back(
    open_url: Maker, path: Path
) -> None:
    engine = await open_url(f"sqlite:///{path}")
    made = await enqueue(engine)
    away = path.with_suffix(".away")
    reopen = ConnectionThread._reopen

    def too_late(self: ConnectionThread, file: OpenedFile) -> None:
        if path.exists() and not away.exists():
            path.rename(away)
        reopen(self, file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConnectionThread, "_reopen", too_late)
        assert await asyncio.to_thread(forked, lambda: None) == 0
        with pytest.raises(EngineUnavailable, match="deleted or moved"):
            await engine.get([made])
    away.rename(path)
    assert len(await engine.get([made])) == 1
    await enqueue(engine)


@pytest.mark.parametrize("listening", [False, True])
async def test_a_file_that_cannot_be_opened_after_a_fork_is_told_and_tried_again(
    sqlite_engine: SqliteEngine, listening: bool
) -> None:
    refused = threading.Event()
    first_open = ConnectionThread._open

    def refuse(self: ConnectionThread, *, create: bool = True) -> sqlite3.Connection:
        if isinstance(self, WriterThread) and not create:
            refused.set()
            raise sqlite3.OperationalError("unable to open database file")
        return first_open(self, create=create)

    if listening:
        await sqlite_engine.listen(lambda: None, lambda job_id: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConnectionThread, "_open", refuse)
        assert await asyncio.to_thread(forked, lambda: None) == 0
        assert await asyncio.to_thread(refused.wait, LIMIT)
        for _ in range(2):
            with pytest.raises(EngineError, match="unable to open"):
                await asyncio.wait_for(enqueue(sqlite_engine), LIMIT)
    await enqueue(sqlite_engine)
    assert writer_of(sqlite_engine).is_alive()
