"""The budget of docs/explanation/budget.md, kept by counting: calls, transactions, rows, bytes.

Nothing here is timed, so that it holds on a busy machine as well.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from asyncpg.prepared_stmt import PreparedStatement
from bench.meters import metered

import headrace
from headrace.engine.postgres.sql import query
from tests.bench.conftest import until
from tests.bench.counting import Counted

Counter_of = Callable[[headrace.App], Counted]

JOBS = 5_000
# Registering, listening, looking for due, lost and old jobs, taking leave: whatever the jobs.
CONSTANT = 60
# Looking at the schema and at types, making the queue known; PostgreSQL also counts what its own
# autovacuum commits meanwhile.
OPENING = 20


def with_touch(url: str, **settings: Any) -> tuple[headrace.App, Any]:
    """An App with a task that does nothing."""
    app = headrace.App(url, **settings)

    @app.task
    async def touch(number: int) -> None: ...

    return app, touch


async def drain(app: headrace.App) -> None:
    await headrace.JobOrchestrator(app).run_until_idle()


async def fill(app: headrace.App, touch: Any, count: int) -> None:
    await app.enqueue_many(touch.job(number) for number in range(count))


# --- running jobs


async def test_one_exchange_serves_many_jobs(store: str, counted: Counter_of) -> None:
    app, touch = with_touch(store)
    async with app:
        await fill(app, touch, JOBS)
        calls = counted(app).calls
        calls.clear()
        await drain(app)
        # On a quiet machine it is five times as many.
        assert calls["exchange"] <= JOBS / 20
        assert calls.total() - calls["exchange"] <= CONSTANT


async def test_a_call_is_one_transaction(store: str, counted: Counter_of) -> None:
    app, touch = with_touch(store)
    async with app:
        await fill(app, touch, JOBS)
    with metered(store) as cost:
        async with app:
            calls = counted(app).calls
            await drain(app)
    assert cost.transactions <= calls.total() + CONSTANT
    assert cost.transactions < JOBS / 15


async def test_a_job_writes_a_bounded_number_of_rows(store: str, counted: Counter_of) -> None:
    app, touch = with_touch(store)
    async with app:
        await fill(app, touch, JOBS)
    with metered(store) as cost:
        async with app:
            exchanges = counted(app).calls
            await drain(app)
    match app.engine.name:
        case "postgres":
            # Claimed; deleted and kept in history.
            assert cost.operations <= 3 * JOBS + CONSTANT
            assert cost.written <= 1_500 * JOBS
        case "redis":
            # Commands inside of scripts work on whole batches, not on jobs.
            assert cost.operations <= 20 * exchanges["exchange"] + 20 * CONSTANT
            assert cost.written <= 1_000 * JOBS
        case _:
            # Pages: a job changes a fraction of one.
            assert cost.operations <= JOBS


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
async def test_an_exchange_is_one_statement(
    store: str, counted: Counter_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: Counter[str] = Counter()
    connect, fetch = asyncpg.connect, PreparedStatement.fetch

    async def connecting(*arguments: Any, **named: Any) -> Any:
        connection = await connect(*arguments, **named)
        connection.add_query_logger(lambda record: statements.update([record.query]))
        return connection

    async def fetching(prepared: Any, *arguments: Any, **named: Any) -> Any:
        # The driver does not tell its loggers of statements that were prepared by hand.
        statements.update([prepared.get_query()])
        return await fetch(prepared, *arguments, **named)

    monkeypatch.setattr(asyncpg, "connect", connecting)
    monkeypatch.setattr(PreparedStatement, "fetch", fetching)
    app, touch = with_touch(store)
    async with app:
        await fill(app, touch, JOBS)
        await drain(app)
        calls = counted(app).calls
        # A worker that leaves says that it wants no more; here that takes no statement.
        assert statements[query("exchange")] == calls["exchange"] - 1
        assert statements[query("insert_alike")] == calls["insert"] == JOBS / 1_000
        assert statements.total() <= calls["exchange"] + calls["insert"] + CONSTANT


@dataclass
class Row:
    number: int


async def test_a_chunk_takes_as_few_exchanges_as_its_jobs_would(
    store: str, counted: Counter_of
) -> None:
    app = headrace.App(store)
    sizes: list[int] = []

    @app.task(chunk=50, chunk_wait=600)
    async def touch(chunk: headrace.Chunk[Row]) -> None:
        sizes.append(len(chunk))

    async with app:
        await fill(app, touch, JOBS)
        calls = counted(app).calls
        calls.clear()
        await drain(app)
        assert sizes == [50] * (JOBS // 50)
        assert calls["exchange"] <= JOBS / 20
        assert calls.total() - calls["exchange"] <= CONSTANT


# --- taking jobs in


async def test_many_jobs_are_stored_a_thousand_at_a_time(store: str, counted: Counter_of) -> None:
    app, touch = with_touch(store)
    with metered(store) as cost:
        async with app:
            calls = counted(app).calls
            await fill(app, touch, 10_000)
    assert calls == {"insert": 10}
    assert cost.transactions <= 10 + OPENING


async def test_stored_jobs_are_nothing_for_the_garbage_collector(store: str) -> None:
    app, touch = with_touch(store)
    async with app:
        jobs = await app.enqueue_many(touch.job(number) for number in range(2))
        sent = [touch.job(number) for number in range(2)]
        answers = await app.engine.insert(sent)
    for each in (*jobs, *sent, *answers):
        assert not gc.is_tracked(each), type(each).__name__


async def test_a_hundred_callers_share_a_trip(store: str, counted: Counter_of) -> None:
    app, touch = with_touch(store)
    async with app:
        calls = counted(app).calls
        jobs = await asyncio.gather(*(touch.enqueue(number) for number in range(100)))
        assert len({job.id for job in jobs}) == 100
        assert calls.total() <= 2


async def test_a_caller_who_is_alone_needs_one_trip(store: str, counted: Counter_of) -> None:
    app, touch = with_touch(store)
    async with app:
        calls = counted(app).calls
        for number in range(10):
            await touch.enqueue(number)
        assert calls == {"insert": 10}


# --- what does not depend on the number of jobs


async def test_an_idle_worker_asks_seldom(store: str, counted: Counter_of) -> None:
    """Three calls a second at most: it looks for jobs and for due ones once each. Those that expire
    are looked for every five seconds.
    """
    app, _ = with_touch(store)
    async with app, headrace.JobOrchestrator(app):
        calls = counted(app).calls
        # The due loop looks once a second: it is the clock here. At first a worker asks more often.
        await until(lambda: calls["promote_due"] >= 3, "three looks for due jobs")
        before = calls.copy()
        await until(lambda: calls["promote_due"] >= before["promote_due"] + 3, "three more")
        assert (calls - before).total() <= 3 * 3 + 1


@pytest.mark.parametrize("running", [1, 100])
async def test_leases_and_waiting_cost_the_same_for_any_number_of_jobs(
    store: str, counted: Counter_of, running: int
) -> None:
    app = headrace.App(store, lease_seconds=1)
    started, gate = asyncio.Semaphore(0), asyncio.Event()

    @app.task
    async def hold(number: int) -> None:
        started.release()
        await gate.wait()

    async with app:
        calls = counted(app).calls
        async with headrace.JobOrchestrator(app, max_workers=running):
            await app.enqueue_many(hold.job(number) for number in range(running))
            for _ in range(running):
                await started.acquire()
            # Whatever the claims brought about is over when the lease has been renewed twice, and
            # no job was asked for in between: on a busy machine that takes longer.
            seen = calls.copy()
            await until(lambda: calls["renew"] >= 2, "two renewals")
            while calls["exchange"] != seen["exchange"]:
                seen.update(calls - seen)
                await until(lambda: calls["renew"] > seen["renew"], "one more")
            before = calls.copy()
            await until(lambda: calls["renew"] >= before["renew"] + 5, "five more")
            spent = calls - before
            gate.set()
        assert spent["write_progress"] == 0
        # Looks for jobs, due and lost ones and for what is held: a few in a second, which five
        # renewals take, but none for a job.
        assert spent["exchange"] <= spent["promote_due"] + 2
        assert spent.total() <= 5 + 20


async def test_progress_is_written_in_batches(store: str, counted: Counter_of) -> None:
    app = headrace.App(store)
    told, gate = asyncio.Semaphore(0), asyncio.Event()

    @app.task
    async def talk(ctx: headrace.Context, number: int) -> None:
        for percent in range(100):
            ctx.progress(percent)
        told.release()
        await gate.wait()

    async with app:
        calls = counted(app).calls
        async with headrace.JobOrchestrator(app, max_workers=50):
            jobs = await app.enqueue_many(talk.job(number) for number in range(50))
            for _ in range(50):
                await told.acquire()

            async def written() -> bool:
                found = await app.engine.get([job.id for job in jobs])
                return all(job.progress == 99 for job in found)

            await until(written, "the progress of all")
            # 5,000 values; one batch unless the jobs could not all start at once.
            assert calls["write_progress"] <= 5
            gate.set()
