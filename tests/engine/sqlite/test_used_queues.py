"""That a queue is used is written down once an hour, not for each job."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headrace.engine.sqlite.connection import thread
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.engine.sqlite.insert import insert
from headrace.engine.sqlite.sql import sql
from headrace.model.outcome import Completed, Settlement
from tests.engine.sqlite.conftest import Maker, writer_of
from tests.support.verbs import a_job, a_worker, claim, enqueue


async def marks(engine: SqliteEngine, **fields: object) -> int:
    """How often the engine writes down that queues are used while a job is stored."""
    statements: list[str] = []
    writer = writer_of(engine)
    await writer.run(lambda it: it.connection.set_trace_callback(statements.append))
    await enqueue(engine, **fields)
    await writer.run(lambda it: it.connection.set_trace_callback(None))
    beginning = sql.queue_seen[: sql.queue_seen.index("VALUES")]
    return sum(each.startswith(beginning) for each in statements)


async def test_it_is_written_down_once_an_hour(sqlite_engine: SqliteEngine) -> None:
    assert [await marks(sqlite_engine) for _ in range(3)] == [1, 0, 0]
    assert await marks(sqlite_engine, queue="other") == 1
    sqlite_engine.clock.advance(3_500)
    assert await marks(sqlite_engine) == 0
    sqlite_engine.clock.advance(200)
    assert [await marks(sqlite_engine) for _ in range(2)] == [1, 0]


async def test_a_queue_that_is_used_is_not_forgotten(sqlite_engine: SqliteEngine) -> None:
    for _ in range(30):
        job_id = await enqueue(sqlite_engine)
        assert await sqlite_engine.cancel([job_id]) == {job_id: True}
        sqlite_engine.clock.advance(3_000)
    await sqlite_engine.prune()
    assert [queue.name for queue in await sqlite_engine.queues()] == ["default"]


async def test_what_is_rolled_back_does_not_count(sqlite_engine: SqliteEngine) -> None:
    def fail(transaction: Transaction) -> None:
        insert(transaction, [a_job()])
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        await writer_of(sqlite_engine).run(fail)
    assert await marks(sqlite_engine) == 1


async def test_followers_that_are_rolled_back_do_not_count(sqlite_engine: SqliteEngine) -> None:
    worker = await a_worker(sqlite_engine)
    await enqueue(sqlite_engine)
    [job] = await claim(sqlite_engine, worker)
    impossible = a_job(queue="other", width=0)
    settlement = Settlement(job.id, job.token, Completed(), follow=(impossible,))
    assert (await sqlite_engine.exchange([settlement])).refused == (job.id,)
    assert await marks(sqlite_engine, queue="other") == 1


async def test_another_file_is_not_taken_for_marked(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "STEADY_SECONDS", 0.0)
    monkeypatch.setattr(thread, "LOOK_SECONDS", 0.0)
    engine = await open_url(f"sqlite:///{path}")
    backup = path.with_name("backup.db")
    with sqlite3.connect(path) as live, sqlite3.connect(backup) as copy:
        live.backup(copy)
    live.close()
    copy.close()
    assert [await marks(engine) for _ in range(2)] == [1, 0]
    backup.replace(path)
    assert await marks(engine) == 1
