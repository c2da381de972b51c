"""A server that is killed and comes back while jobs run: nothing is lost, the worker heals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import headrace
from headrace.errors import EngineUnavailable
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, until
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of this test's own, which writes through to the disk."""
    made: Server
    if request.param == "postgres":
        made = PostgresServer(postgres_binaries()["postgres"], durable=True, name="restart")
    else:
        made = RedisServer(redis_binaries()["redis"], fsync="always", name="restart")
    made.start()
    yield made
    made.destroy()


async def test_a_killed_server_costs_no_job(
    server: Server, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.loops import loop

    whole = loop.backoff
    monkeypatch.setattr(loop, "backoff", lambda failures: whole(failures) / 10)
    runs: dict[str, int] = {}

    # Longer than a server takes to come back on a machine that does much else.
    async with headrace.App(server.url, lease_seconds=60) as app:

        async def step() -> int:
            return 1

        @app.task
        async def staged(ctx: headrace.Context) -> int:
            runs[ctx.job_id] = runs.get(ctx.job_id, 0) + 1
            ctx.progress(10)
            value = await ctx.stage("one", step)
            await asyncio.sleep(0.002)
            return value + await ctx.stage("two", step)

        jobs = await app.enqueue_many(staged.job() for _ in range(600))
        orchestrator = worker(app)
        await orchestrator.start()
        for round_number in range(2):
            done = 100 + 200 * round_number
            await until(lambda: orchestrator.telemetry.outcomes().get("completed", 0) >= done)  # noqa: B023
            failures = orchestrator.telemetry.exchange_failures
            await asyncio.to_thread(server.kill)
            await until(lambda: orchestrator.telemetry.exchange_failures > failures)  # noqa: B023
            await asyncio.to_thread(server.start)

        async def all_done() -> bool:
            try:
                found = await app.engine.get([job.id for job in jobs])
            except EngineUnavailable:
                return False
            return all(job.status.final for job in found)

        await until(all_done, limit=60)
        over = await app.engine.get([job.id for job in jobs])
        assert {(job.status, job.result) for job in over} == {(Status.COMPLETED, 2)}
        assert {job.attempt for job in over} == {1}, "no lease was lost, so no attempt was spent"
        assert set(runs.values()) == {1}
        assert orchestrator.telemetry.exchange_failures > 0
        await until(lambda: orchestrator.healthy)
        assert await app.engine.audit() == []
        await orchestrator.stop()
