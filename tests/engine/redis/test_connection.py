"""Connections: few, shared, and healed when they break."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineError, EngineUnavailable
from headrace.model.worker import WorkerStats
from tests.engine.redis.conftest import OwnServer, Starter, connections, eventually
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, the_job


async def opened(server: OwnServer) -> RedisEngine:
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    return engine


async def healthy(engine: RedisEngine) -> bool:
    return engine.listening


async def test_many_callers_share_one_connection(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    inserted = await asyncio.gather(*(redis_engine.insert([a_job()]) for _ in range(200)))
    assert len({answer.id for [answer] in inserted}) == 200
    assert len(await connections(admin, redis_engine.address.namespace)) == 1


async def test_a_worker_process_holds_three_connections(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    worker = await a_worker(redis_engine)
    stop = await redis_engine.listen(lambda: None, lambda _: None)
    keeper = redis_engine.keeper(worker, LEASE)
    for _ in range(3):
        await asyncio.to_thread(keeper.renew, WorkerStats())
        await asyncio.gather(*(claim(redis_engine, worker) for _ in range(20)))
    assert len(await connections(admin, redis_engine.address.namespace)) == 3
    await asyncio.to_thread(keeper.close)
    stop()


async def test_closing_leaves_no_connection(
    engine_url: str, clock: Clock, admin: RedisConnection
) -> None:
    engine = RedisEngine(engine_url, clock=clock)
    await engine.open()
    await engine.listen(lambda: None, lambda _: None)
    await engine.close()

    async def nobody_left() -> bool:
        return not await connections(admin, engine.address.namespace)

    await eventually(nobody_left)
    with pytest.raises(EngineUnavailable, match="closed"):
        await engine.queues()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("count", [1, 500])
async def test_closing_finishes_what_was_accepted(
    engine_url: str, clock: Clock, admin: RedisConnection, known: bool, count: int
) -> None:
    """Also where the server does not have the script yet, or any more."""
    engine = RedisEngine(engine_url, clock=clock)
    await engine.open()
    await engine.insert([a_job() for _ in range(count)])
    if not known:
        await admin.call("SCRIPT", "FLUSH")
    jobs = [a_job() for _ in range(count)]
    inserting = asyncio.create_task(engine.insert(jobs))
    await asyncio.sleep(0)
    await engine.close()
    assert len(await inserting) == count
    with pytest.raises(EngineUnavailable, match="the engine is closed"):
        await engine.insert([a_job()])


async def test_a_killed_connection_is_replaced(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    job_id = await enqueue(redis_engine)
    wire = await redis_engine._link.wire()
    for client in await connections(admin, redis_engine.address.namespace):
        await admin.call("CLIENT", "KILL", "ID", client)
    await asyncio.wait_for(asyncio.shield(wire.closed), 60)
    assert (await the_job(redis_engine, job_id)).id == job_id


async def test_who_waits_when_the_connection_dies_is_told(start_server: Starter) -> None:
    server = start_server()
    engine = await opened(server)
    wire = await engine._link.wire()
    waiting = asyncio.create_task(engine._link.call("BLPOP", "nothing", 0))
    await asyncio.sleep(0)
    server.kill()
    with pytest.raises(EngineUnavailable, match=str(server.port)):
        await asyncio.wait_for(waiting, 60)
    assert not wire.open_now
    await engine.close()


async def test_acknowledged_jobs_survive_a_killed_server(start_server: Starter) -> None:
    server = start_server(fsync="always")
    engine = await opened(server)
    worker = await a_worker(engine)
    ids = [answer.id for answer in await engine.insert([a_job(lane="l") for _ in range(20)])]
    [running] = await claim(engine, worker, 5)
    server.kill()
    with pytest.raises(EngineUnavailable):
        await engine.queues()
    server.start()
    assert [job.id for job in await engine.get(ids)] == ids
    assert await complete(engine, running)
    assert [job.id for job in await claim(engine, worker, 5)] == ids[1:2]
    assert await engine.audit() == []
    await engine.close()


async def test_a_lease_keeper_heals(start_server: Starter) -> None:
    server = start_server(fsync="always")
    engine = await opened(server)
    keeper = engine.keeper(await a_worker(engine), LEASE)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    server.kill()
    with pytest.raises(EngineUnavailable, match=str(server.port)):
        await asyncio.to_thread(keeper.renew, WorkerStats())
    server.start()
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)
    await engine.close()


async def test_a_listener_heals_and_looks_once(start_server: Starter) -> None:
    server = start_server()
    engine = await opened(server)
    work = asyncio.Event()
    stop = await engine.listen(work.set, lambda _: None)
    assert await healthy(engine)
    server.kill()

    async def deaf() -> bool:
        return not engine.listening

    await eventually(deaf)
    work.clear()
    server.start()
    await asyncio.wait_for(work.wait(), 60)
    assert await healthy(engine)
    work.clear()
    await enqueue(engine)
    await asyncio.wait_for(work.wait(), 60)
    stop()
    assert not engine.listening
    await engine.close()


async def test_listening_may_begin_while_the_server_is_away(start_server: Starter) -> None:
    server = start_server()
    engine = await opened(server)
    server.kill()
    work = asyncio.Event()
    stop = await engine.listen(work.set, lambda _: None)
    assert not engine.listening
    server.start()
    await asyncio.wait_for(work.wait(), 60)
    stop()
    await engine.close()


async def test_a_server_that_hangs_is_given_up(start_server: Starter) -> None:
    server = start_server()
    engine = await opened(server)
    keeper = engine.keeper(await a_worker(engine), LEASE)
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EngineUnavailable, match="no answer within 2 s"):
            await asyncio.wait_for(engine.queues(), 60)
        with pytest.raises(EngineUnavailable):
            await asyncio.to_thread(keeper.renew, WorkerStats())
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert await engine.queues() == []
    await asyncio.to_thread(keeper.close)
    await engine.close()


async def test_a_cancelled_caller_does_not_confuse_the_others(redis_engine: RedisEngine) -> None:
    given_up = asyncio.create_task(redis_engine.queues())
    await asyncio.sleep(0)
    given_up.cancel()
    job_id = await enqueue(redis_engine)
    assert (await the_job(redis_engine, job_id)).id == job_id
    with pytest.raises(asyncio.CancelledError):
        await given_up


async def test_a_socket_file_does_as_well(start_server: Starter, tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    start_server("--unixsocket", str(path))
    engine = RedisEngine(f"unix://{path}?namespace=t", clock=Clock())
    await engine.open()
    worker = await a_worker(engine)
    keeper = engine.keeper(worker, LEASE)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)
    await engine.close()


async def test_a_password_is_used_and_never_shown(start_server: Starter) -> None:
    server = start_server("--requirepass", "s3cret/x")
    wrong = RedisEngine(f"redis://:hidden@127.0.0.1:{server.port}/0", clock=Clock())
    with pytest.raises(EngineError, match="HEADRACE_URL") as caught:
        await wrong.open()
    assert "hidden" not in str(caught.value)
    right = RedisEngine(f"valkey://:s3cret%2Fx@127.0.0.1:{server.port}/3", clock=Clock())
    await right.open()
    keeper = right.keeper(await a_worker(right), LEASE)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)
    await right.close()
    await wrong.close()


async def test_something_else_behind_the_port_is_said_plainly() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    engine = RedisEngine(f"redis://127.0.0.1:{port}/0", clock=Clock())
    with pytest.raises(EngineUnavailable, match=f"127.0.0.1:{port}"):
        await engine.open()
    await engine.close()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://h/x", "db='x'"),
        ("redis://h:99999/0", "cannot be read"),
        ("redis://h/0?namespaze=a", "namespaze"),
        ("redis://h/0?namespace=a%20b", "namespace name"),
        ("redis://h/0?timeout=soon", "timeout='soon'"),
    ],
)
def test_a_wrong_url_is_refused_with_the_part_that_is_wrong(url: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        RedisAddress.parse(url)


def test_a_url_is_read_whole() -> None:
    address = RedisAddress.parse("rediss://me:p%40ss@h:7000/5?namespace=n&timeout=3")
    assert (address.host, address.port, address.database) == ("h", 7000, 5)
    assert (address.username, address.password, address.tls) == ("me", "p@ss", True)
    assert (address.namespace, address.prefix, address.timeout) == ("n", "{n}:", 3.0)
    assert str(address) == "h:7000"
