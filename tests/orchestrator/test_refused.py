"""A server that is there and says no: a start ends with its words, a worker that runs waits."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import asyncpg
import pytest
import redis.asyncio as redis

import headrace
from headrace.dispatchers.events.adapters.redis_streams import RedisStreamsAdapter
from headrace.dispatchers.events.dispatcher import QueueDispatcher, run_dispatcher
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.errors import translated
from headrace.errors import EngineRefused, EngineUnavailable
from headrace.model.worker import Worker
from headrace.orchestrator import run_worker
from headrace.orchestrator.worker_info import name_after_loss
from tests.conftest import Servers
from tests.support.processes import Processes
from tests.support.servers import RedisServer, redis_binaries

APP = "import headrace\napp = headrace.App()\n"


def wrong_urls(servers: Servers) -> dict[str, str]:
    """Addresses of servers that are there, with something wrong in each."""
    postgres, other = servers.url("postgres"), servers.url("redis")
    start, _, _ = postgres.rpartition("/")
    return {
        "no such database": f"{start}/nowhere",
        "no such user": postgres.replace("postgres@", "nobody@"),
        "wrong password": other.replace("redis://", "redis://nobody:wrong@"),
    }


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("no such database", 'database "nowhere" does not exist'),
        ("no such user", 'role "nobody" does not exist'),
        ("wrong password", "WRONGPASS"),
    ],
)
async def test_a_worker_that_starts_with_a_wrong_address_ends_with_the_reason(
    mistake: str, told: str, servers: Servers
) -> None:
    app = headrace.App(wrong_urls(servers)[mistake])
    async with asyncio.timeout(60):
        with pytest.raises(EngineRefused) as refused:
            await run_worker(headrace.JobOrchestrator(app))
    assert told in str(refused.value)
    assert "HEADRACE_URL" in str(refused.value)
    assert "cannot be reached" not in str(refused.value)
    # One that runs goes on trying: to it this is an engine that is away.
    assert isinstance(refused.value, EngineUnavailable)
    await app.close()


async def test_an_event_dispatcher_that_starts_with_a_wrong_address_ends_with_the_reason(
    servers: Servers,
) -> None:
    app = headrace.App(wrong_urls(servers)["wrong password"])
    adapter = RedisStreamsAdapter(streams=["orders"], url=servers.url("redis"))
    async with asyncio.timeout(60):
        with pytest.raises(EngineRefused, match="WRONGPASS"):
            await run_dispatcher(QueueDispatcher(app, adapter))
    await app.close()


async def test_the_program_ends_with_a_code_and_the_reason(
    servers: Servers, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    where = {"HEADRACE_URL": wrong_urls(servers)["no such database"], "HEADRACE_APP": "shop"}
    with Processes(tmp_path) as processes:
        worker = processes.headrace("worker", **where)
        assert await worker.ended(90) == 3
    assert 'database "nowhere" does not exist' in worker.said


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SET statement_timeout = 1; SELECT pg_sleep(60)", "statement_timeout"),
        ("SET default_transaction_read_only = on; CREATE TABLE t ()", "read-only"),
    ],
)
async def test_a_server_that_answered_is_not_called_away(
    statement: str, told: str, servers: Servers
) -> None:
    connection = await asyncpg.connect(servers.url("postgres"))
    first, second = statement.split("; ")
    await connection.execute(first)
    with pytest.raises(asyncpg.PostgresError) as error:
        await connection.execute(second)
    await connection.close()
    made = translated(error.value, Address(dsn="", schema="s", shown="here"))
    assert isinstance(made, EngineUnavailable)
    assert str(made).startswith("PostgreSQL at here cannot do this now: ")
    assert told in str(made)
    away = translated(ConnectionRefusedError("refused"), Address(dsn="", schema="s", shown="here"))
    assert str(away).startswith("PostgreSQL at here cannot be reached: refused. Check that it runs")


async def test_a_store_that_was_emptied_is_told_as_that(caplog: pytest.LogCaptureFixture) -> None:
    server = RedisServer(redis_binaries()["redis"])
    server.start()
    try:
        async with headrace.App(server.url) as app:
            orchestrator = headrace.JobOrchestrator(app, name="one")
            async with orchestrator:
                client = redis.Redis.from_url(server.url)
                await client.flushall()
                await client.aclose()
                assert orchestrator._runtime is not None
                await orchestrator._runtime.register_again()
                assert orchestrator.name == "one"
                [worker] = await app.workers()
                assert worker.name == "one"
    finally:
        server.destroy()
    assert "was emptied (FLUSHALL)" in caplog.text
    assert "Another worker" not in caplog.text


def a_worker(name: str, identity: str, *, alive: bool = True) -> Worker:
    now = headrace.App("sqlite:///:memory:").clock.utcnow()
    return Worker(
        id=identity,
        name=name,
        host="h",
        pid=os.getpid(),
        version="1",
        queues=(),
        slots=1,
        running=0,
        memory_bytes=0,
        cpu_percent=0.0,
        healthy=True,
        alive=alive,
        started_at=now,
        heartbeat_at=now,
        lease_until=now,
    )


@pytest.mark.parametrize(
    ("there", "kept", "told"),
    [
        ([], True, "was emptied"),
        ([a_worker("w", "other")], False, "Another worker has registered"),
        # A registration of ours whose answer was lost.
        ([a_worker("w", "own-2")], True, ""),
        # The clock of the store went ahead.
        ([a_worker("w", "own", alive=False)], True, ""),
        ([a_worker("x", "other")], True, "was emptied"),
    ],
)
def test_why_a_lease_is_lost(
    there: list[Worker], kept: bool, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = name_after_loss("w", {"own", "own-2"}, there)
    assert (name == "w") is kept
    assert told in caplog.text
    assert bool(told) is bool(caplog.text)
