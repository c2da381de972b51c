"""How many connections a worker holds, counted on the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest
import redis

import headrace
from tests.conftest import Servers, store_url
from tests.orchestrator.conftest import Worker, ended

MOST = 5


async def count_on_postgres(url: str) -> int:
    connection = await asyncpg.connect(url.partition("?")[0])
    try:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return count
    finally:
        await connection.close()


def count_on_redis(url: str) -> int:
    with redis.Redis.from_url(url.partition("?")[0]) as client:
        return len(client.client_list()) - 1


@pytest.mark.parametrize("name", ["postgres", "redis"])
async def test_a_hundred_running_jobs_need_five_connections_at_most(
    name: str, servers: Servers, tmp_path: Path, worker: Worker
) -> None:
    url = store_url(name, servers, tmp_path)

    async def count() -> int:
        if name == "postgres":
            return await count_on_postgres(url)
        return await asyncio.to_thread(count_on_redis, url)

    before = await count()
    async with headrace.App(url, lease_seconds=1) as app:
        together, counted = asyncio.Barrier(101), asyncio.Event()

        async def step() -> int:
            return 1

        @app.task
        async def busy(ctx: headrace.Context) -> None:
            ctx.progress(10)
            await ctx.stage("one", step)
            await together.wait()
            await counted.wait()

        orchestrator = worker(app, max_workers=100)
        await orchestrator.start()
        jobs = await app.enqueue_many(busy.job() for _ in range(100))
        await together.wait()
        assert await count() - before <= MOST
        counted.set()
        for job in jobs:
            await ended(app, job)
        assert await count() - before <= MOST
        await orchestrator.stop()
