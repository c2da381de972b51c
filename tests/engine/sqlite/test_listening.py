"""Signals of the SQLite engine: heard across processes, and not when there is nothing to hear."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace.engine.sqlite.connection import writer
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.sqlite.conftest import Maker
from tests.support.verbs import a_job, a_worker, claim, enqueue

ENQUEUE = """
import asyncio, sys
from headrace.clock import Clock
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.model.ids import new_id
from headrace.model.job import NewJob

async def main():
    engine = SqliteEngine(sys.argv[1], clock=Clock())
    await engine.open()
    await engine.insert([NewJob(id=new_id(), task="t")])
    await engine.close()

asyncio.run(main())
"""


async def all_signals(engine: SqliteEngine) -> None:
    """Wait for what was signalled: the writer signals before it takes the next operation."""
    await engine.record_put("any", "thing", b"1")


async def test_another_process_is_heard(sqlite_engine: SqliteEngine, path: Path) -> None:
    heard = asyncio.Event()
    end = await sqlite_engine.listen(heard.set, lambda _: None)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ENQUEUE, f"sqlite:///{path}", stderr=subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, errors.decode()
    await asyncio.wait_for(heard.wait(), 60)
    end()


async def test_another_process_is_heard_though_the_first_look_failed(
    sqlite_engine: SqliteEngine, open_url: Maker, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await open_url(f"sqlite:///{path}")
    heard, failed = asyncio.Event(), threading.Event()
    look = writer._resumed

    def busy(connection: sqlite3.Connection) -> float:
        if not failed.is_set():
            failed.set()
            raise sqlite3.OperationalError("database is locked")
        return look(connection)

    end = await sqlite_engine.listen(heard.set, lambda _: None)
    monkeypatch.setattr(writer, "_resumed", busy)
    await enqueue(other)
    assert await asyncio.to_thread(failed.wait, 10)
    await asyncio.wait_for(heard.wait(), 60)
    end()


async def test_an_ended_listener_hears_nothing(sqlite_engine: SqliteEngine) -> None:
    heard: list[str] = []
    end = await sqlite_engine.listen(lambda: heard.append("ended"), heard.append)
    still = await sqlite_engine.listen(lambda: heard.append("listening"), heard.append)
    end()
    end()
    assert sqlite_engine.listening
    await enqueue(sqlite_engine)
    await all_signals(sqlite_engine)
    assert set(heard) == {"listening"}
    still()
    assert not sqlite_engine.listening


async def test_taking_all_there_is_wakes_nobody(sqlite_engine: SqliteEngine) -> None:
    worker = await a_worker(sqlite_engine)
    await sqlite_engine.insert([a_job(lane="l") for _ in range(5)])
    jobs = await claim(sqlite_engine, worker, 10)
    heard: list[str] = []
    end = await sqlite_engine.listen(lambda: heard.append("work"), heard.append)
    for _ in range(4):
        answer = await sqlite_engine.exchange(
            [Settlement(job.id, job.token, Completed()) for job in jobs],
            worker_id=worker,
            limit=10,
        )
        jobs = answer.jobs
        assert len(jobs) == 1
    await all_signals(sqlite_engine)
    assert heard == []
    end()


async def test_what_is_left_over_is_told(sqlite_engine: SqliteEngine) -> None:
    worker = await a_worker(sqlite_engine)
    await sqlite_engine.insert([a_job(lane="l"), a_job(lane="l")])
    [job] = await claim(sqlite_engine, worker, 10)
    heard = asyncio.Event()
    end = await sqlite_engine.listen(heard.set, lambda _: None)
    await sqlite_engine.exchange([Settlement(job.id, job.token, Completed())])
    await asyncio.wait_for(heard.wait(), 60)
    end()
