"""redis+cluster:// URLs: a store is on the node that has its slot, and is followed from there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest

from headrace.clock import Clock
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineError, EngineUnavailable, InvalidSetting
from headrace.model.worker import WorkerStats
from tests.conftest import Servers
from tests.engine.redis.production.groups import ClusterGroup
from tests.engine.redis.production.nodes import ClusterNode
from tests.support.processes import until
from tests.support.servers import free_port
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue, the_job

Open = Callable[..., Awaitable[RedisEngine]]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens engines, and closes them when the test is over."""
    engines: list[RedisEngine] = []

    async def open_engine(url: str) -> RedisEngine:
        engines.append(RedisEngine(url, clock=Clock()))
        await engines[-1].open()
        return engines[-1]

    yield open_engine
    for engine in engines:
        await engine.close()


def store(cluster: ClusterGroup, node: ClusterNode) -> str:
    """A new store on this node."""
    namespace = cluster.namespace_of(node, f"t{uuid4().hex[:8]}.")
    return cluster.url(namespace=namespace, timeout=5)


def port_of(engine: RedisEngine) -> int:
    assert engine._link.node is not None
    return engine._link.node.port


async def test_several_stores_are_spread_over_the_nodes(
    cluster: ClusterGroup, opened: Open
) -> None:
    """Each has all of its verbs, wake-ups and its lease on the node of its slot."""
    masters = [node for node in cluster.members if node.slots()]
    for node in masters:
        engine = await opened(store(cluster, node))
        work = asyncio.Event()
        stop = await engine.listen(work.set, lambda _: None)
        keeper = engine.keeper(worker := await a_worker(engine), LEASE)
        job_id = await enqueue(engine, key="k", lane="l")
        await asyncio.wait_for(work.wait(), 60)
        [job] = await claim(engine, worker)
        assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
        assert await complete(engine, job, b'"done"')
        assert (await the_job(engine, job_id)).result_json == b'"done"'
        assert port_of(engine) == node.port
        assert await engine.audit() == []
        await asyncio.to_thread(keeper.close)
        stop()
    assert len(masters) == 3


async def test_one_host_is_enough_and_others_may_be_away(
    cluster: ClusterGroup, opened: Open
) -> None:
    for node in (node for node in cluster.members if node.slots()):
        namespace = cluster.namespace_of(node, f"t{uuid4().hex[:8]}.")
        for other in cluster.members:
            hosts = f"127.0.0.1:{free_port()},127.0.0.1:{other.port}"
            engine = await opened(f"redis+cluster://{hosts}?namespace={namespace}")
            assert port_of(engine) == node.port


async def works(engine: RedisEngine) -> bool:
    try:
        await engine.queues()
    except EngineUnavailable:
        return False
    return True


def with_replica(cluster: ClusterGroup) -> ClusterNode:
    return next(
        node
        for node in cluster.members
        if node.told("INFO", "replication").get("connected_slaves") == "1"
    )


async def test_everything_follows_a_master_that_is_killed(
    cluster: ClusterGroup, opened: Open
) -> None:
    old = with_replica(cluster)
    engine = await opened(store(cluster, old))
    worker = await a_worker(engine)
    keeper = engine.keeper(worker, LEASE)
    work = asyncio.Event()
    stop = await engine.listen(work.set, lambda _: None)
    ids = [await enqueue(engine, lane="l") for _ in range(5)]
    [running] = await claim(engine, worker)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    # Replication is one stream: what a replica has of the last write, it has of all before.
    assert await engine._link.call("WAIT", 1, 4_000) == 1
    old.kill()
    with pytest.raises(EngineUnavailable):
        await engine.queues()
    await until(lambda: works(engine))
    assert port_of(engine) == cluster.owner(engine.address.namespace).port != old.port
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    assert await complete(engine, running)
    [job] = await claim(engine, worker)
    assert [running.id, job.id] == ids[:2]
    await until(lambda: engine.listening)
    work.clear()
    await enqueue(engine)
    await asyncio.wait_for(work.wait(), 60)
    assert await complete(engine, job)
    assert await engine.audit() == []
    stop()
    await asyncio.to_thread(keeper.close)
    await asyncio.to_thread(cluster.revive)
    await asyncio.to_thread(cluster.wait_until_whole)


async def test_a_master_that_changes_places_with_its_replica_is_left_without_an_error(
    cluster: ClusterGroup, opened: Open
) -> None:
    """Its replica takes over by itself, as before an update: callers notice nothing."""
    old = with_replica(cluster)
    engine = await opened(store(cluster, old))
    replica = next(node for node in cluster.members if not node.slots())
    ids = [await enqueue(engine)]
    replica.ask("CLUSTER", "FAILOVER")

    async def moved() -> bool:
        ids.extend(await asyncio.gather(*(enqueue(engine) for _ in range(10))))
        return port_of(engine) == replica.port

    await until(moved)
    assert len(await engine.get(ids)) == len(ids)
    await asyncio.to_thread(cluster.wait_until_whole)


async def test_a_slot_that_is_given_to_another_node_is_followed_there(
    cluster: ClusterGroup, opened: Open
) -> None:
    """Piece by piece, as tools do it: meanwhile commands of one key are asked where the key is,
    and scripts wait until all keys are together again.
    """
    source, target = [node for node in cluster.members if node.slots()][:2]
    engine = await opened(store(cluster, source))
    beside = await opened(store(cluster, source))
    worker = await a_worker(engine)
    ids = [await enqueue(engine, lane="l") for _ in range(5)]
    record = await engine.record_put("kind", "key", b"body")
    slot = engine.address.slot
    source_id, target_id = source.id, target.id
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
    keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    moved = [key for key in keys if key.endswith((":records", ":meta"))]
    assert len(moved) == 2
    source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *moved)
    assert await engine.record_get("kind", "key") == record
    with pytest.raises(EngineUnavailable, match="TRYAGAIN"):
        await enqueue(engine)
    rest = [key for key in keys if key not in moved]
    source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *rest)
    assert await engine.record_get("kind", "key") == record
    for node in (target, source):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", target_id)
    assert [job.id for job in await claim(engine, worker, 5)] == ids[:1]
    assert len(await asyncio.gather(*(enqueue(engine) for _ in range(20)))) == 20
    assert port_of(engine) == target.port
    assert await engine.audit() == []
    assert port_of(beside) == source.port, "only what has moved is followed"


async def test_nodes_that_no_url_names_are_asked_when_those_are_gone(
    cluster: ClusterGroup, opened: Open
) -> None:
    seed = next(node for node in cluster.members if not node.slots())
    namespace = cluster.namespace_of(cluster.members[1], f"t{uuid4().hex[:8]}.")
    engine = await opened(f"redis+cluster://127.0.0.1:{seed.port}?namespace={namespace}&timeout=5")
    seed.kill()
    try:
        await (await engine._link.wire()).close()
        assert await enqueue(engine)
        assert port_of(engine) == cluster.members[1].port
    finally:
        await asyncio.to_thread(cluster.revive)
        await asyncio.to_thread(cluster.wait_until_whole)


async def test_no_job_is_handed_over_by_a_message_in_a_cluster(
    cluster: ClusterGroup, opened: Open
) -> None:
    """All nodes pass it on, and the script would hear only of listeners on its own: a job could be
    handed over and be ready as well.
    """
    engine = await opened(store(cluster, cluster.members[1]))
    handed: list[object] = []
    stop = await engine.listen(lambda: None, lambda _: None, lambda *told: handed.append(told))
    worker = await a_worker(engine)
    assert await claim(engine, worker) == []
    job_id = await enqueue(engine)
    assert [job.id for job in await claim(engine, worker)] == [job_id]
    assert not engine._listener.inbox
    stop()


async def test_a_plain_url_to_a_node_of_a_cluster_is_told(cluster: ClusterGroup) -> None:
    engine = RedisEngine(cluster.members[0].url, clock=Clock())
    with pytest.raises(EngineError, match=r"part of a Redis Cluster.*redis\+cluster://"):
        await engine.open()
    await engine.close()


async def test_a_server_that_is_no_cluster_is_told(servers: Servers) -> None:
    url = servers.url("redis").replace("redis://", "redis+cluster://")
    engine = RedisEngine(url, clock=Clock())
    with pytest.raises(EngineError, match=r"not part of a cluster.*redis://") as caught:
        await engine.open()
    assert not isinstance(caught.value, EngineUnavailable)


async def test_a_slot_that_nobody_has_is_told(cluster: ClusterGroup) -> None:
    node = cluster.members[1]
    address = RedisAddress.parse(store(cluster, node))
    for each in cluster.members:
        each.ask("CLUSTER", "DELSLOTS", address.slot)
    url = cluster.url(namespace=address.namespace)

    async def told() -> bool:
        engine = RedisEngine(url, clock=Clock())
        try:
            await engine.open()
        except EngineUnavailable as error:
            return f"slot {address.slot}" in str(error) and address.namespace in str(error)
        finally:
            await engine.close()
        return False

    await until(told)
    node.ask("CLUSTER", "ADDSLOTS", address.slot)
    await asyncio.to_thread(cluster.wait_until_whole)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis+cluster://h:7000,i:7001/3", "db=3.*cluster.*namespace"),
        ("redis+cluster://h?db=2", "db=2.*cluster.*namespace"),
        ("redis+sentinel://h:26379,i:26379", "redis.sentinel://.*NAME"),
        ("redis+sentinel://h/m/x", "db='x'"),
        ("redis+sentinel://h/m?sentinel_tls=maybe", "sentinel_tls='maybe'"),
        ("redis+sentinel://h/m?sentinel_username=u", "sentinel_password"),
        ("redis+sentinel://h/m?ssl_ca_certs=a.pem", "rediss.sentinel://"),
        ("redis+cluster://h?ssl_ca_certs=a.pem", "rediss.cluster://"),
        ("redis+cluster://h?sentinel_password=x", "sentinel_password.*for sentinels"),
        ("redis://h?sentinel_password=x", "sentinel_password.*for sentinels"),
        ("redis://h:1,i:2/0", "several hosts"),
        ("redis+both://h", "redis.cluster://"),
        ("redis+cluster://h:1,i:99999", "cannot be read"),
    ],
)
def test_a_wrong_url_is_refused_with_the_part_that_is_wrong(url: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        RedisAddress.parse(url)


def test_a_url_of_sentinels_is_read_whole() -> None:
    address = RedisAddress.parse(
        "rediss+sentinel://me:p%40ss@h:7000,[::1],i/m/3?sentinel_username=w&sentinel_password=p%2Fs"
        "&sentinel_tls=no&namespace=n"
    )
    assert (address.kind, address.master, address.database) == ("sentinel", "m", 3)
    assert address.hosts == (("h", 7000), ("::1", 26379), ("i", 26379))
    sentinel, server = address.sentinel(address.hosts[1]), address.at(("j", 1))
    assert (sentinel.username, sentinel.password, sentinel.tls) == ("w", "p/s", False)
    assert (server.username, server.password, server.tls) == ("me", "p@ss", True)
    assert (str(sentinel), str(server)) == ("[::1]:26379", "j:1")
    assert str(address) == "m (sentinels h:7000, [::1]:26379, i:26379)"
    assert (server.kind, server.database, sentinel.database) == ("server", 3, 0)


def test_a_url_of_a_cluster_is_read_whole() -> None:
    address = RedisAddress.parse("valkey+cluster://:p@h,i:7001?namespace=foo")
    assert (address.kind, address.hosts) == ("cluster", (("h", 6379), ("i", 7001)))
    assert (address.slot, address.tls, address.database) == (12182, False, 0)
    assert str(address) == "cluster (h:6379, i:7001)"
