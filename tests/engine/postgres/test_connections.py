"""Few connections, and each comes back by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import EngineUnavailable
from headrace.model.durable.writes import Note
from headrace.model.worker import WorkerStats
from tests.engine.postgres.conftest import Raw
from tests.support.servers import PostgresServer, postgres_binaries
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, the_job

T = TypeVar("T")

OURS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'headrace %'"


@pytest.fixture(scope="module", params=list(postgres_binaries()))
def own_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server that a test may kill."""
    server = PostgresServer(postgres_binaries()[request.param], name=request.param)
    server.start()
    yield server
    server.destroy()


@pytest.fixture
def engine_url(own_server: PostgresServer) -> str:
    if own_server.process is None:
        own_server.start()
    return f"{own_server.url}?schema=s{time.time_ns()}"


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Wait for a condition, not longer than the limit."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the condition is on the server
            await asyncio.sleep(0.01)


async def connections(raw: Raw) -> list[int]:
    return [row[0] for row in await raw.fetch(OURS)]


@pytest.fixture
async def alone(raw: Raw, postgres: PostgresEngine) -> Raw:
    """The stranger, after all connections of earlier tests have gone."""

    async def only_ours() -> bool:
        return len(await connections(raw)) <= 1

    await eventually(only_ours)
    return raw


async def test_who_only_enqueues_has_one_connection(postgres: PostgresEngine, alone: Raw) -> None:
    await asyncio.gather(*(enqueue(postgres, key=f"k{n}", lane="l") for n in range(20)))
    job_id = await enqueue(postgres)
    await the_job(postgres, job_id)
    await postgres.cancel([job_id])
    assert len(await connections(alone)) == 1


async def test_a_worker_with_a_hundred_running_jobs_has_three(
    postgres: PostgresEngine, alone: Raw
) -> None:
    worker = await a_worker(postgres)
    stop = await postgres.listen(lambda: None, lambda job_id: None)
    await postgres.insert([a_job() for _ in range(150)])
    jobs = await claim(postgres, worker, 100)
    keeper = postgres.keeper(worker, LEASE)

    async def work(number: int) -> None:
        job = jobs[number]
        assert await postgres.write_progress([Note(job.id, job.token, progress=50.0)]) == ()
        if number % 10 == 0:
            await postgres.promote_due(10)
            await postgres.take_lost(10)
            assert await asyncio.to_thread(lambda: keeper.renew(WorkerStats()).alive)
        assert len(await connections(alone)) <= 3 if number == 50 else True
        assert await complete(postgres, job)

    assert len(jobs) == 100
    await asyncio.to_thread(keeper.renew, WorkerStats())
    assert len(await connections(alone)) == 3
    for n in range(0, 100, 10):
        await asyncio.gather(*(work(number) for number in range(n, n + 9)))
    assert len(await connections(alone)) == 3
    await asyncio.to_thread(keeper.close)
    stop()

    async def given_back() -> bool:
        return len(await connections(alone)) == 2

    await eventually(given_back)


async def test_what_is_only_looked_at_closes_again(
    postgres: PostgresEngine, alone: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres._views, "_idle_seconds", 0.1)
    await postgres.queues()

    async def closed() -> bool:
        return len(await connections(alone)) == 1

    await eventually(closed)
    assert await postgres.queues() == []


async def test_lost_connections_come_back(postgres: PostgresEngine, alone: Raw) -> None:
    worker = await a_worker(postgres)
    keeper = postgres.keeper(worker, LEASE)
    heard = asyncio.Event()
    stop = await postgres.listen(heard.set, lambda job_id: None)
    await asyncio.to_thread(keeper.renew, WorkerStats())
    await claim(postgres, worker)
    for _ in range(3):
        before = await connections(alone)
        heard.clear()
        for pid in before:
            await alone.execute("SELECT pg_terminate_backend($1)", pid)
        # Everybody is told to look, because a signal may have been lost meanwhile.
        await asyncio.wait_for(heard.wait(), 20)
        assert postgres.listening
        job_id = await once_more(lambda: enqueue(postgres))
        [job] = await once_more(lambda: claim(postgres, worker, 1, ["default"]))
        assert job.id == job_id
        assert await complete(postgres, job)
        renewal = await once_more(lambda: asyncio.to_thread(keeper.renew, WorkerStats()))
        assert renewal.alive
        assert not set(before) & set(await connections(alone))
        heard.clear()
        await enqueue(postgres, queue="signal")
        await asyncio.wait_for(heard.wait(), 20)
    await asyncio.to_thread(keeper.close)
    stop()


async def once_more(verb: Callable[[], Awaitable[T]]) -> T:
    """Call a verb whose connection may have been lost a moment ago: at most one call fails."""
    try:
        return await verb()
    except EngineUnavailable:
        return await verb()


async def test_a_killed_server_is_missed_and_found_again(
    postgres: PostgresEngine, own_server: PostgresServer
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres, lane="l", key="k")
    heard = asyncio.Event()
    stop = await postgres.listen(heard.set, lambda job_id: None)
    [job] = await claim(postgres, worker)
    keeper = postgres.keeper(worker, LEASE)
    await asyncio.to_thread(keeper.renew, WorkerStats())

    own_server.kill()

    async def deaf() -> bool:
        return not postgres.listening

    await eventually(deaf)
    for verb in (
        lambda: enqueue(postgres),
        lambda: claim(postgres, worker),
        lambda: complete(postgres, job),
        postgres.queues,
        lambda: asyncio.to_thread(keeper.renew, WorkerStats()),
    ):
        for _ in range(2):
            with pytest.raises(EngineUnavailable, match=f"127.0.0.1:{own_server.port}") as caught:
                await verb()
            assert caught.value.__cause__ is not None

    heard.clear()
    own_server.start()
    await asyncio.wait_for(heard.wait(), 20)
    assert postgres.listening
    assert (await the_job(postgres, job_id)).worker == "worker"
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    assert await complete(postgres, job)
    await asyncio.to_thread(keeper.close)
    stop()


async def test_an_orderly_shutdown_is_missed_too(
    postgres: PostgresEngine, own_server: PostgresServer
) -> None:
    worker = await a_worker(postgres)
    await claim(postgres, worker)
    await asyncio.to_thread(own_server.stop)
    with pytest.raises(EngineUnavailable):
        await enqueue(postgres)
    with pytest.raises(EngineUnavailable):
        await claim(postgres, worker)
    own_server.start()
    await enqueue(postgres)
    assert len(await claim(postgres, worker)) == 1


async def test_a_server_that_does_not_answer_is_given_up(
    postgres: PostgresEngine, alone: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement may have taken effect or not; the connection is not used again."""
    worker = await a_worker(postgres)
    await postgres._exchanges.close()
    monkeypatch.setattr(postgres._exchanges, "_timeout", 0.5)
    await claim(postgres, worker)
    pid = await alone.fetchval(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace exchange'"
    )
    await enqueue(postgres)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(EngineUnavailable, match="no answer in time"):
            await claim(postgres, worker)
    finally:
        os.kill(pid, signal.SIGCONT)

    async def gone() -> bool:
        return pid not in await connections(alone)

    await eventually(gone)
    found = await claim(postgres, worker) or await postgres.claimed_by(worker)
    assert len(found) == 1


async def test_too_many_connections_is_trouble_that_passes(own_server: PostgresServer) -> None:
    limit = 0
    taken = []
    engine = PostgresEngine(f"{own_server.url}?schema=crowded", clock=Clock())
    await engine.open()
    await engine.close()
    with contextlib.suppress(asyncpg.TooManyConnectionsError):
        while limit < 300:
            limit += 1
            taken.append(await asyncpg.connect(own_server.url))
    with pytest.raises(EngineUnavailable, match="max_connections"):
        await engine.open()
    for connection in taken:
        await connection.close()

    async def opened() -> bool:
        with contextlib.suppress(EngineUnavailable):
            await engine.open()
            return True
        return False

    await eventually(opened)
    await engine.close()


async def test_a_closed_engine_opens_nothing_behind_your_back(postgres: PostgresEngine) -> None:
    await postgres.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        await enqueue(postgres)
    await postgres.open()
    assert await enqueue(postgres)


async def test_a_statement_is_planned_once_for_many_calls(engine_url: str) -> None:
    engine = PostgresEngine(engine_url, clock=Clock())
    await engine.open()
    for _ in range(3):
        await enqueue(engine)
    async with engine._common.hold() as connection:
        kept = await connection.fetch(
            "SELECT generic_plans + custom_plans FROM pg_prepared_statements "
            "WHERE statement LIKE '%Store one job%'"
        )
    await engine.close()
    assert [calls for (calls,) in kept] == [3]
