"""The writer: what waits is committed together, and nobody spoils it for the others."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable
from typing import Any

import pytest

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.errors import InvalidInput, RecordConflict, StorageFull
from headrace.model.outcome import Completed, Failure, Retry, Settlement
from headrace.model.status import Status
from headrace.model.worker import WorkerStats
from tests.engine.sqlite.conftest import on_writer, writer_of
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status

BROKEN = "\ud800"


async def together(engine: SqliteEngine, *verbs: Awaitable[Any]) -> list[Any]:
    """Run verbs in one batch: the writer is kept busy until all of them wait."""
    began, go = threading.Event(), threading.Event()

    def keep_busy(transaction: Transaction) -> None:
        began.set()
        go.wait(10)

    busy = asyncio.ensure_future(writer_of(engine).run(keep_busy))
    await asyncio.to_thread(began.wait, 10)
    waiting = [asyncio.ensure_future(verb) for verb in verbs]
    await asyncio.sleep(0)
    go.set()
    await busy
    return await asyncio.gather(*waiting, return_exceptions=True)


async def test_what_waits_is_committed_together(sqlite_engine: SqliteEngine) -> None:
    statements: list[str] = []
    await writer_of(sqlite_engine).run(
        lambda it: it.connection.set_trace_callback(statements.append)
    )
    answers = await together(sqlite_engine, *(enqueue(sqlite_engine) for _ in range(40)))
    assert len(await sqlite_engine.get(answers)) == 40
    # The one that kept the writer busy, then all the others.
    assert statements.count("COMMIT") in (2, 3)


async def test_many_jobs_are_stored_by_few_statements(sqlite_engine: SqliteEngine) -> None:
    statements: list[str] = []
    await writer_of(sqlite_engine).run(
        lambda it: it.connection.set_trace_callback(statements.append)
    )
    await sqlite_engine.insert([a_job() for _ in range(100)])
    stored = [each for each in statements if "INSERT INTO job (" in each]
    # Six of sixteen jobs, and one for each of the others.
    assert len(stored) == 6 + 4


async def test_a_failing_operation_does_not_poison_its_batch(sqlite_engine: SqliteEngine) -> None:
    await sqlite_engine.record_put("kind", "key", b"1", version=0)
    first, conflict, broken, second = await together(
        sqlite_engine,
        enqueue(sqlite_engine, key="k"),
        sqlite_engine.record_put("kind", "key", b"2", version=0),
        sqlite_engine.insert([a_job(), a_job(task=BROKEN)]),
        enqueue(sqlite_engine),
    )
    assert isinstance(conflict, RecordConflict)
    assert isinstance(broken, InvalidInput)
    assert [job.id for job in await sqlite_engine.get([first, second])] == [first, second]
    [queue] = await sqlite_engine.queues()
    assert queue.ready == 2
    record = await sqlite_engine.record_get("kind", "key")
    assert record is not None
    assert record.body == b"1"


async def test_a_failure_alone_leaves_nothing_behind(sqlite_engine: SqliteEngine) -> None:
    with pytest.raises(InvalidInput):
        await sqlite_engine.insert([a_job(key="k", lane="l"), a_job(task=BROKEN)])
    assert await sqlite_engine.queues() == []
    job_id = await enqueue(sqlite_engine, key="k")
    assert await status(sqlite_engine, job_id) is Status.PENDING


async def test_a_cancelled_caller_does_not_disturb_the_others(sqlite_engine: SqliteEngine) -> None:
    leaving = asyncio.ensure_future(enqueue(sqlite_engine))
    staying = asyncio.ensure_future(enqueue(sqlite_engine))
    await asyncio.sleep(0)
    leaving.cancel()
    job_id = await staying
    assert await status(sqlite_engine, job_id) is Status.PENDING


async def test_an_impossible_settlement_is_refused_alone(sqlite_engine: SqliteEngine) -> None:
    soon: Any = "soon"
    impossible = Retry(Failure("E", "m"), soon)
    worker = await a_worker(sqlite_engine)
    await sqlite_engine.insert([a_job(lane=f"l{n}") for n in range(9)])
    jobs = await claim(sqlite_engine, worker, 9)
    outcomes = [impossible if n == 4 else Completed(b"1") for n in range(9)]
    answer = await sqlite_engine.exchange(
        [
            Settlement(job.id, job.token, outcome)
            for job, outcome in zip(jobs, outcomes, strict=True)
        ],
    )
    assert answer.refused == (jobs[4].id,)
    assert await status(sqlite_engine, jobs[4].id) is Status.RUNNING
    assert await status(sqlite_engine, jobs[8].id) is Status.COMPLETED


async def test_results_come_back_byte_by_byte(sqlite_engine: SqliteEngine) -> None:
    worker = await a_worker(sqlite_engine)
    results = [b'"\\u0000"', b'{"a": [1, 2.50]}', '"레인"'.encode(), b"[" + b"1," * 9999 + b"1]"]
    await sqlite_engine.insert([a_job() for _ in results])
    jobs = await claim(sqlite_engine, worker, len(results))
    await sqlite_engine.exchange(
        [
            Settlement(job.id, job.token, Completed(result))
            for job, result in zip(jobs, results, strict=True)
        ]
    )
    done = await sqlite_engine.get([job.id for job in jobs])
    assert [job.result_json for job in done] == results


async def test_a_lease_is_renewed_while_the_event_loop_is_blocked(
    sqlite_engine: SqliteEngine,
) -> None:
    worker = await a_worker(sqlite_engine)
    renewed = threading.Event()

    def renew() -> None:
        sqlite_engine.keeper(worker, 30.0).renew(WorkerStats())
        renewed.set()

    thread = threading.Thread(target=renew)
    thread.start()
    limit = time.monotonic() + 10
    while not renewed.is_set():  # the event loop does nothing else meanwhile
        assert time.monotonic() < limit
    thread.join()


async def test_no_room_loses_nothing_and_heals(
    sqlite_engine: SqliteEngine, behind: sqlite3.Connection
) -> None:
    worker = await a_worker(sqlite_engine)
    kept = [each.id for each in await sqlite_engine.insert([a_job(lane="l") for _ in range(50)])]
    [running] = await claim(sqlite_engine, worker)
    [(pages,)] = behind.execute("PRAGMA page_count").fetchall()
    await on_writer(sqlite_engine, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageFull, match="Free disk space"):
        await sqlite_engine.insert([a_job(args=b'"' + b"x" * 100_000 + b'"') for _ in range(5)])
    assert await sqlite_engine.audit() == []
    [queue] = await sqlite_engine.queues()
    assert (queue.running, queue.ready, queue.waiting) == (1, 0, 49)
    await on_writer(sqlite_engine, "PRAGMA max_page_count = 1000000")
    assert await complete(sqlite_engine, running)
    more = await enqueue(sqlite_engine, args=b'"' + b"x" * 100_000 + b'"')
    assert len(await sqlite_engine.get([*kept, more])) == 51


async def test_what_is_too_large_does_not_take_the_small_with_it(
    sqlite_engine: SqliteEngine, behind: sqlite3.Connection
) -> None:
    worker = await a_worker(sqlite_engine)
    await enqueue(sqlite_engine)
    [job] = await claim(sqlite_engine, worker)
    [(pages,)] = behind.execute("PRAGMA page_count").fetchall()
    await on_writer(sqlite_engine, f"PRAGMA max_page_count = {pages + 2}")
    large, done = await together(
        sqlite_engine,
        sqlite_engine.insert([a_job(args=b'"' + b"x" * 1_000_000 + b'"')]),
        complete(sqlite_engine, job),
    )
    assert isinstance(large, StorageFull)
    assert done is True
    assert await status(sqlite_engine, job.id) is Status.COMPLETED
