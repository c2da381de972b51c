"""Queues and workers that came and went cost nothing, by the steps that SQLite takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable

from headrace.engine.sqlite.connection.thread import ConnectionThread, Transaction
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.sqlite.conftest import writer_of
from tests.support.verbs import a_job, a_worker, claim

MANY = 1_000
EVERY = 10
# In tens of instructions: what a few rows more or less make.
FEW = 20


async def steps_of(engine: SqliteEngine, verb: Awaitable[object]) -> int:
    """How many steps SQLite takes for a verb, on both connections, in tens of its instructions."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(transaction: Transaction, every: int) -> None:
        connection: sqlite3.Connection = transaction.connection
        connection.set_progress_handler(count if every else None, every)

    assert engine._reader is not None
    threads: list[ConnectionThread] = [writer_of(engine), engine._reader]
    for thread in threads:
        await thread.run(lambda it: watch(it, EVERY))
    await verb
    for thread in threads:
        await thread.run(lambda it: watch(it, 0))
    return steps


async def finish_all(engine: SqliteEngine) -> None:
    worker = await a_worker(engine, "last")
    while jobs := await claim(engine, worker, 500):
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])
    await engine.retire(worker)


async def many_queues(engine: SqliteEngine) -> None:
    await engine.insert([a_job(queue=f"once-{n}") for n in range(MANY)])
    await finish_all(engine)


async def many_dead(engine: SqliteEngine) -> None:
    """Workers that died lately, so nobody forgets them yet."""
    tasks = tuple(f"some.task.{n}" for n in range(100))
    for n in range(MANY):
        await a_worker(engine, f"gone-{n}", tasks=tasks)
    engine.clock.advance(60)
    await engine.take_lost(10)
    assert not any(each.alive for each in await engine.workers())


async def test_queues_of_today_cost_upkeep_nothing(sqlite_engine: SqliteEngine) -> None:
    await sqlite_engine.prune(keep=0)
    alone = await steps_of(sqlite_engine, sqlite_engine.prune(keep=0))
    await many_queues(sqlite_engine)
    await sqlite_engine.prune(keep=0, limit=2 * MANY)
    assert await steps_of(sqlite_engine, sqlite_engine.prune(keep=0)) <= alone + FEW


async def test_a_step_of_pruning_does_not_look_at_queues_and_lanes(
    sqlite_engine: SqliteEngine,
) -> None:
    await sqlite_engine.insert([a_job(lane=f"lane-{n}") for n in range(MANY)])
    await many_queues(sqlite_engine)
    full = await steps_of(sqlite_engine, sqlite_engine.prune(keep=0, limit=10))
    last = await steps_of(sqlite_engine, sqlite_engine.prune(keep=2 * MANY - 20, limit=11))
    # The last one of several clears all lanes.
    assert 2 * full < last


async def test_dead_workers_cost_sweeps_and_new_workers_nothing(
    sqlite_engine: SqliteEngine,
) -> None:
    async def new_worker(name: str) -> None:
        await sqlite_engine.retire(await a_worker(sqlite_engine, name))

    verbs: dict[str, Callable[[], Awaitable[object]]] = {
        "lost": lambda: sqlite_engine.take_lost(10),
        "prune": lambda: sqlite_engine.prune(keep=0),
        "register": lambda: new_worker("new"),
    }
    alone = {name: await steps_of(sqlite_engine, verb()) for name, verb in verbs.items()}
    await many_dead(sqlite_engine)
    for name, verb in verbs.items():
        assert await steps_of(sqlite_engine, verb()) <= alone[name] + FEW, name
