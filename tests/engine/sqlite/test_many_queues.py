"""Queues that have nothing to run cost a claim nothing, however many there are."""

from __future__ import annotations

import sqlite3

from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.sqlite.conftest import writer_of
from tests.support.verbs import a_job, a_worker, claim, enqueue


async def steps_of_a_claim(engine: SqliteEngine, worker: str) -> int:
    """How many steps SQLite takes to hand out one job, in thousands of its instructions."""
    await enqueue(engine, queue="busy")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(transaction: Transaction, every: int) -> None:
        connection: sqlite3.Connection = transaction.connection
        connection.set_progress_handler(count if every else None, every)

    writer = writer_of(engine)
    await writer.run(lambda it: watch(it, 10))
    [job] = await claim(engine, worker)
    await writer.run(lambda it: watch(it, 0))
    await engine.exchange([Settlement(job.id, job.token, Completed())])
    return steps


async def test_a_claim_does_not_look_at_queues_without_ready_jobs(
    sqlite_engine: SqliteEngine,
) -> None:
    worker = await a_worker(sqlite_engine)
    await steps_of_a_claim(sqlite_engine, worker)
    alone = await steps_of_a_claim(sqlite_engine, worker)
    await sqlite_engine.insert([a_job(queue=f"once-{n}") for n in range(2_000)])
    while jobs := await claim(sqlite_engine, worker, 500):
        await sqlite_engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])
    assert await steps_of_a_claim(sqlite_engine, worker) <= alone + 10
