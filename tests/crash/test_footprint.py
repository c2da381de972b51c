"""What a worker with a hundred jobs takes: connections, counted on the server, and memory."""

from __future__ import annotations

import psutil  # type: ignore[import-untyped]

from tests.crash.conftest import Scene
from tests.support.processes import Process

RUNNING = 100
MEBIBYTE = 1_048_576


async def test_a_hundred_running_jobs_need_few_connections_and_little_memory(
    scene: Scene,
) -> None:
    for _ in range(RUNNING):
        await scene.app.enqueue("gated", {"gate": scene.gate})
    worker = scene.worker("worker", lease=30, slots=RUNNING)
    await scene.happened("start", RUNNING)
    connections = await connections_of(scene, worker)
    memory = psutil.Process(worker.pid).memory_info().rss
    print(f"{scene.app.engine.name}: {connections} connections, {memory / MEBIBYTE:.1f} MiB")
    assert connections <= (0 if scene.app.engine.name == "sqlite" else 5)
    assert memory < 60 * MEBIBYTE
    scene.open_gate(1)
    await scene.all_over()


async def connections_of(scene: Scene, worker: Process) -> int:
    """How many connections the server has from this process."""
    ours = psutil.Process(worker.pid).net_connections("tcp")
    ports = {each.laddr.port for each in ours}
    return len(ports & await ports_seen_by_server(scene))


async def ports_seen_by_server(scene: Scene) -> set[int]:
    """The ports of all clients, as the server tells them."""
    match scene.app.engine.name:
        case "postgres":
            import asyncpg

            connection = await asyncpg.connect(scene.url.partition("?")[0])
            try:
                rows = await connection.fetch(
                    "SELECT client_port FROM pg_stat_activity WHERE client_port > 0"
                )
            finally:
                await connection.close()
            return {row["client_port"] for row in rows}
        case "redis":
            import redis.asyncio

            client = redis.asyncio.Redis.from_url(scene.url.partition("?")[0])
            try:
                clients = await client.client_list()
            finally:
                await client.aclose()
            return {int(each["addr"].rpartition(":")[2]) for each in clients}
        case _:
            return set()
