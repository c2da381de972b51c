"""Servers that are killed under load: what was acknowledged is done, and workers find back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.errors import EngineUnavailable
from headrace.model.job import Job
from headrace.model.status import Status
from tests.conftest import ENGINES
from tests.crash.conftest import Scene
from tests.support.processes import Processes, until
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)


@pytest.fixture(params=ENGINES[1:])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """A server of the test's own that keeps what it has acknowledged."""
    name: str = request.param
    server: Server
    if name.startswith("postgres"):
        server = PostgresServer(postgres_binaries()[name], durable=True)
    else:
        server = RedisServer(redis_binaries()[name], fsync="always")
    server.start()
    yield server
    server.destroy()


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    server: Server, tmp_path: Path
) -> None:
    with Processes(tmp_path) as processes:
        scene = Scene(server.url, tmp_path, processes)
        async with scene.app:
            await survive(scene, server)
            assert await scene.app.engine.audit() == []


async def survive(scene: Scene, server: Server) -> None:
    workers = [scene.worker(name, lease=10, slots=4) for name in ("one", "two")]
    acknowledged: list[Job] = []
    enough = asyncio.Event()

    async def produce() -> None:
        while not enough.is_set():
            try:
                acknowledged.append(await scene.app.tasks["work"].enqueue(seconds=0.01))
            except EngineUnavailable:
                await asyncio.sleep(0.05)  # as a caller would, before it tries again

    producers = [asyncio.create_task(produce()) for _ in range(5)]
    await scene.happened("end", 20)
    for _ in range(2):
        server.kill()
        server.start()
        # Producers and both workers go on by themselves.
        goal = len(acknowledged) + 20
        goals = {worker.pid: ends(scene, worker.pid) + 5 for worker in workers}

        def all_go_on(goal: int = goal, goals: dict[int, int] = goals) -> bool:
            working = all(ends(scene, pid) >= count for pid, count in goals.items())
            return working and len(acknowledged) >= goal

        await until(all_go_on, "further work after the server's return")
    enough.set()
    await asyncio.gather(*producers)
    await scene.all_over()
    assert {job.status for job in await scene.jobs(acknowledged)} == {Status.COMPLETED}
    assert [worker.code for worker in workers] == [None, None]
    for worker in workers:
        worker.terminate()
        assert await worker.ended() == 0, worker.said


def ends(scene: Scene, pid: int) -> int:
    """How many jobs a process has ended."""
    return sum(line.pid == pid for line in scene.lines("end"))
