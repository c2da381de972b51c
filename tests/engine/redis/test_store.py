"""What the server may do to us: be full, be read-only, be new, be wrongly set up."""

from __future__ import annotations

import msgspec
import pytest

from headrace.clock import Clock
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.engine.redis.layout import newest
from headrace.errors import EngineError, EngineUnavailable, SchemaTooNew, StorageFull
from headrace.model.ids import new_id
from headrace.model.insert_policy import InsertPolicy
from headrace.model.outcome import Failed, Failure, Settlement
from headrace.model.status import Status
from headrace.model.views import Finding
from tests.engine.redis.conftest import Starter
from tests.support.servers import free_port
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status


async def finding(engine: RedisEngine, subject: str) -> Finding:
    return next(each for each in (await engine.report()).findings if each.subject == subject)


async def test_a_newer_schema_is_refused_by_name(engine_url: str, admin: RedisConnection) -> None:
    engine = RedisEngine(engine_url, clock=Clock())
    await engine.open()
    await admin.call("HSET", engine.key("meta"), "schema", 99)
    other = RedisEngine(engine_url, clock=Clock())
    with pytest.raises(SchemaTooNew, match=rf"know version 99; .* up to {newest()}\. Upgrade"):
        await other.open()
    await other.close()
    await engine.close()


async def test_a_store_that_was_emptied_is_reported(start_server: Starter) -> None:
    server = start_server()
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    assert not [each for each in (await engine.report()).findings if each.subject == "schema"]
    await engine._link.call("FLUSHALL")
    report = await engine.report()
    assert report.schema_version == 0
    assert "was emptied" in (await finding(engine, "schema")).detail
    await enqueue(engine)
    await engine.close()


async def test_a_full_server_refuses_jobs_but_lets_running_ones_finish(
    start_server: Starter,
) -> None:
    server = start_server("--maxmemory", "30mb")
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    worker = await a_worker(engine)
    job_id = await enqueue(engine, lane="l")
    second = await enqueue(engine, lane="l")
    late = await enqueue(engine, expires_in=0, queue="late")
    replaced = a_job(key="k", queue="late", policy=InsertPolicy(on_duplicate="replace"))
    await engine.insert_by_policy(replaced)
    [job] = await claim(engine, worker, 1, ["default"])
    stored: list[str] = []

    async def insert_until_full(size: int) -> None:
        big = b'{"a":"' + b"x" * size + b'"}'
        for _ in range(1_000):
            stored.extend(each.id for each in await engine.insert([a_job(args=big, queue="big")]))

    # What a call carries counts until it is answered: then there may be room for a smaller one.
    for size in (100_000, 1_000):
        with pytest.raises(StorageFull, match="maxmemory"):
            await insert_until_full(size)
    [queue] = [each for each in await engine.queues() if each.name == "big"]
    assert queue.ready == len(stored)
    with pytest.raises(StorageFull, match="maxmemory"):
        await engine.insert_by_policy(msgspec.structs.replace(replaced, id=new_id()))
    assert await status(engine, replaced.id) is Status.PENDING
    assert (await engine.expire(10)).ids == (late,)
    assert await complete(engine, job)
    assert await status(engine, job_id) is Status.COMPLETED
    assert [job.id for job in await claim(engine, worker, 1, ["default"])] == [second]
    assert await engine.prune(keep=0) == 2
    assert await engine.audit() == []
    await engine.close()


async def test_a_replica_cannot_serve_now(start_server: Starter) -> None:
    server = start_server()
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    await engine._link.call("REPLICAOF", "127.0.0.1", 1)
    with pytest.raises(EngineUnavailable, match="cannot serve now"):
        await engine.insert([a_job()])
    await engine._link.call("REPLICAOF", "NO", "ONE")
    assert (await engine.insert([a_job()]))[0].created
    await engine.close()


async def test_a_cluster_is_refused_with_the_reason(start_server: Starter) -> None:
    server = start_server("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    engine = RedisEngine(server.store, clock=Clock())
    with pytest.raises(EngineError, match="Redis Cluster"):
        await engine.open()
    await engine.close()


async def test_a_server_that_throws_data_away_is_reported(start_server: Starter) -> None:
    server = start_server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    eviction = await finding(engine, "eviction")
    assert (eviction.level, "allkeys-lru" in eviction.detail) == ("error", True)
    assert "noeviction" in eviction.remedy
    await engine._link.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert (await finding(engine, "eviction")).level == "ok"
    await engine.close()


async def test_the_report_tells_how_durable_the_server_is(start_server: Starter) -> None:
    server = start_server()
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    for setting, level in (("always", "ok"), ("everysec", "ok"), ("no", "warning")):
        await engine._link.call("CONFIG", "SET", "appendfsync", setting)
        durability = await finding(engine, "durability")
        assert (durability.level, setting in durability.detail) == (level, True)
    await engine._link.call("CONFIG", "SET", "appendonly", "no")
    assert (await finding(engine, "durability")).level == "error"
    await engine.close()


@pytest.mark.parametrize("lane", [None, "l"])
async def test_the_age_of_a_long_line_is_told_by_the_first_of_each_priority(
    redis_engine: RedisEngine, clock: Clock, lane: str | None
) -> None:
    """Looking at all of a very long line would hold the server up."""
    await redis_engine.insert([a_job(lane=lane, run_at=clock.now() - 50)])
    await redis_engine.insert([a_job(lane=lane, run_at=clock.now() - 30) for _ in range(20)])
    late = a_job(lane=lane, run_at=clock.now() - 900)
    await redis_engine.insert([*(a_job(lane=lane) for _ in range(1_100)), late])
    [queue] = await redis_engine.queues()
    assert queue.oldest_age is not None
    assert 49 < queue.oldest_age < 200
    await redis_engine.insert([a_job(lane=lane, priority=-5, run_at=clock.now() - 1_900)])
    [queue] = await redis_engine.queues()
    assert queue.oldest_age is not None
    assert 1_899 < queue.oldest_age < 2_000


async def test_namespaces_do_not_see_each_other(redis_engine: RedisEngine, engine_url: str) -> None:
    await enqueue(redis_engine)
    other = RedisEngine(f"{engine_url}x", clock=Clock())
    await other.open()
    assert await other.queues() == []
    await other.close()


async def test_a_pruned_store_leaves_nothing_behind(
    redis_engine: RedisEngine, admin: RedisConnection, clock: Clock
) -> None:
    """Every structure is empty again, except for what marks the store."""
    worker = await a_worker(redis_engine)
    await redis_engine.insert([a_job(lane=f"l{n}", key=f"k{n}") for n in range(5)])
    for n, job in enumerate(await claim(redis_engine, worker, 5)):
        if n % 2:
            assert await complete(redis_engine, job, b"[1]")
        else:
            failed = Settlement(job.id, job.token, Failed(Failure("E", "m")), b"{}")
            await redis_engine.exchange([failed])
    await redis_engine.retire(worker)
    clock.advance(10)
    assert await redis_engine.prune(older_than=1) == 5
    left = {
        key.decode().removeprefix(redis_engine.address.prefix)
        for key in await admin.call("KEYS", f"{redis_engine.address.prefix}*")
    }
    marked = {"admitted", "bodies", "entries", "errors", "lanes", "logs", "notes", "results"}
    marked.add("task_keys")
    assert left == {"meta", "queues", *marked}
    for name in marked:
        assert await admin.call("HLEN", redis_engine.key(name)) == 1
