"""redis+sentinel:// URLs: the master is found, and followed when it is another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest

from headrace.clock import Clock
from headrace.engine.redis import scripts
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.connection import RedisProtocol
from headrace.engine.redis.engine import RedisEngine
from headrace.engine.redis.scripts import script
from headrace.errors import EngineError, EngineUnavailable
from headrace.model.worker import WorkerStats
from tests.engine.redis.production.groups import MASTER, Group, SentinelGroup
from tests.engine.redis.production.nodes import Node, Sentinel, started
from tests.support.processes import until
from tests.support.servers import free_port, redis_binaries
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue, the_job


@pytest.fixture
async def engine(sentinels: SentinelGroup) -> AsyncIterator[RedisEngine]:
    engine = RedisEngine(store(sentinels), clock=Clock())
    await engine.open()
    yield engine
    await engine.close()


def store(sentinels: SentinelGroup) -> str:
    return sentinels.url(namespace=f"t{uuid4().hex[:8]}", timeout=5)


def port_of(engine: RedisEngine) -> int:
    assert engine._link.node is not None
    return engine._link.node.port


async def test_jobs_go_to_the_master(sentinels: SentinelGroup, engine: RedisEngine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, args=b'{"a": 1}')
    [job] = await claim(engine, worker)
    assert await complete(engine, job, b'"done"')
    assert (await the_job(engine, job_id)).result_json == b'"done"'
    assert port_of(engine) == sentinels.master.port


async def test_a_master_that_is_replaced_while_it_lives_is_left(
    sentinels: SentinelGroup, engine: RedisEngine
) -> None:
    """Sentinels let it go on as a master for ten seconds more: who stays with it writes in vain."""
    work = asyncio.Event()
    stop = await engine.listen(work.set, lambda _: None)
    keeper = engine.keeper(await a_worker(engine), LEASE)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    old = sentinels.master
    new = next(node for node in sentinels.servers if node is not old)
    enough = asyncio.Event()

    async def produce() -> None:
        while not enough.is_set():
            await enqueue(engine)

    producers = [asyncio.create_task(produce()) for _ in range(3)]
    try:
        await until(lambda: sentinels.sentinels[0].ask("SENTINEL", "FAILOVER", MASTER) == "OK")
        await until(lambda: sentinels.master is new)
        host = ("127.0.0.1", new.port)
        await until(lambda: engine._link.node == engine.address.at(host), limit=5)
        assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
        assert keeper._link.node == engine._link.node
        assert old.told("INFO", "replication")["role"] == "master", "nobody has told it yet"
        kept = [await enqueue(engine) for _ in range(50)]
    finally:
        enough.set()
        await asyncio.gather(*producers)
    # As a sentinel will; it then has what the new one has.
    old.ask("REPLICAOF", "127.0.0.1", new.port)
    await asyncio.to_thread(sentinels.wait_until_whole)
    assert len(await engine.get(kept)) == len(kept)
    channel = engine.key("signals")
    await until(lambda: new.ask("PUBSUB", "NUMSUB", channel) == [channel, 1])
    work.clear()
    await enqueue(engine)
    await asyncio.wait_for(work.wait(), 60)
    assert await engine.audit() == []
    stop()
    await asyncio.to_thread(keeper.close)


async def test_a_server_that_is_no_master_is_not_used_although_a_sentinel_names_it(
    sentinels: SentinelGroup,
) -> None:
    """One that was cut off from the others may be wrong for long."""
    replica = next(node for node in sentinels.servers if node is not sentinels.master)
    line = f"sentinel monitor mistaken 127.0.0.1 {replica.port} 2"
    sentinel: Sentinel = started(lambda: Sentinel(sentinels.binary, "mistaken", line))
    try:
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/mistaken"
        engine = RedisEngine(url, clock=Clock())
        with pytest.raises(EngineUnavailable, match=rf"{replica.port} is no master"):
            await engine.open()
        await engine.close()
    finally:
        sentinel.destroy()


async def connect_to(engine: RedisEngine, node: Node) -> None:
    """Let the engine be connected to a server that it would not choose now."""
    await (await engine._link.wire()).close()
    host = ("127.0.0.1", node.port)
    engine._link._wire = await RedisProtocol.open(engine.address.at(host))


async def works(engine: RedisEngine) -> bool:
    try:
        await engine.queues()
    except EngineUnavailable:
        return False
    return True


async def test_everything_follows_a_master_that_is_killed(
    sentinels: SentinelGroup, engine: RedisEngine
) -> None:
    """Verbs, the lease and wake-ups; a first call fails or waits no longer than it has to."""
    worker = await a_worker(engine)
    keeper = engine.keeper(worker, LEASE)
    work = asyncio.Event()
    stop = await engine.listen(work.set, lambda _: None)
    ids = [await enqueue(engine, lane="l") for _ in range(5)]
    [running] = await claim(engine, worker)
    old = sentinels.master
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    assert int(old.ask("WAIT", 1, 10_000)) == 1
    old.kill()
    with pytest.raises(EngineUnavailable):
        await engine.queues()
    await until(lambda: works(engine))
    assert port_of(engine) == sentinels.master.port != old.port
    # It goes where the verbs have gone, and does not try the old server first.
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
    await asyncio.to_thread(sentinels.revive)
    await asyncio.to_thread(sentinels.wait_until_whole)


@pytest.mark.parametrize("scripts_there", [False, True])
async def test_a_master_that_has_become_a_replica_is_left_without_an_error(
    sentinels: SentinelGroup, engine: RedisEngine, scripts_there: bool
) -> None:
    """It ran nothing, so each command is sent once more, where it can run."""
    await engine.queues()
    replica = next(node for node in sentinels.servers if node is not sentinels.master)
    replica.ask("SCRIPT", "FLUSH")
    for name in scripts.names() if scripts_there else ():
        assert replica.ask("SCRIPT", "LOAD", script(name).source) == script(name).sha
    await connect_to(engine, replica)
    job_ids = await asyncio.gather(*(enqueue(engine) for _ in range(20)))
    assert port_of(engine) == sentinels.master.port
    assert len(await engine.get(job_ids)) == 20
    await connect_to(engine, replica)
    assert len(await claim(engine, await a_worker(engine), 20)) == 20


async def test_wake_ups_come_from_where_the_verbs_are_called(
    sentinels: SentinelGroup, engine: RedisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica passes on what its master publishes, but the master does not count who listens."""
    # A line that is silent for twice as long would be left for that.
    monkeypatch.setattr("headrace.engine.redis.notify._CHECK_SECONDS", 0.5)
    replica = next(node for node in sentinels.servers if node is not sentinels.master)
    at_replica = engine.address.at(("127.0.0.1", replica.port))
    opened = []

    async def open_at_replica(on_push: object) -> RedisProtocol:
        opened.append(at_replica)
        engine._listener._nodes.open = type(engine._listener._nodes).open.__get__(  # type: ignore[method-assign]
            engine._listener._nodes
        )
        return await RedisProtocol.open(at_replica, on_push)  # type: ignore[arg-type]

    engine._listener._nodes.open = open_at_replica  # type: ignore[method-assign, assignment]
    stop = await engine.listen(lambda: None, lambda _: None)
    assert opened == [at_replica]
    channel = engine.key("signals")

    async def heard_by_master() -> bool:
        await engine.queues()
        return bool(sentinels.master.ask("PUBSUB", "NUMSUB", channel) == [channel, 1])

    await until(heard_by_master, limit=15)
    stop()


async def test_sentinels_that_are_away_do_no_harm(sentinels: SentinelGroup) -> None:
    address = RedisAddress.parse(store(sentinels))
    hosts = f"127.0.0.1:{free_port()},{address.hosts[0][0]}:{address.hosts[0][1]}"
    engine = RedisEngine(f"redis+sentinel://{hosts}/{MASTER}", clock=Clock())
    await engine.open()
    assert port_of(engine) == sentinels.master.port
    await engine.close()


async def test_a_wrong_name_is_told(sentinels: SentinelGroup) -> None:
    engine = RedisEngine(store(sentinels).replace(MASTER, "mymister"), clock=Clock())
    with pytest.raises(EngineError, match=r"no master named 'mymister'.*HEADRACE_URL") as caught:
        await engine.open()
    assert not isinstance(caught.value, EngineUnavailable)


async def test_a_server_that_is_no_sentinel_is_told(sentinels: SentinelGroup) -> None:
    url = f"redis+sentinel://127.0.0.1:{sentinels.master.port}/{MASTER}"
    engine = RedisEngine(url, clock=Clock())
    with pytest.raises(EngineError, match=r"is no sentinel.*redis://"):
        await engine.open()


async def test_no_sentinel_at_all_is_an_outage() -> None:
    ports = free_port(), free_port()
    url = f"redis+sentinel://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/{MASTER}"
    engine = RedisEngine(url, clock=Clock())
    with pytest.raises(EngineUnavailable, match=rf"no sentinel of .*{ports[0]}.*{ports[1]}"):
        await engine.open()


class PrivateGroup(Group):
    """A master and a sentinel that want passwords, each another one."""

    def start(self) -> None:
        binary = redis_binaries()["redis"]
        self.server = Node(binary, "private", "--requirepass", "s3cret/a")
        self.sentinel = Sentinel(
            binary,
            "private-sentinel",
            f"sentinel monitor {MASTER} 127.0.0.1 {self.server.port} 1",
            f"sentinel auth-pass {MASTER} s3cret/a",
            "user default off",
            "user watcher on >s3cret/b ~* &* +@all",
        )
        self.begin([self.server, self.sentinel])


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateGroup]:
    group: PrivateGroup = started(PrivateGroup)
    yield group
    group.destroy()


async def test_sentinels_have_users_and_passwords_of_their_own(private: PrivateGroup) -> None:
    hosts = f"127.0.0.1:{private.sentinel.port}/{MASTER}"
    url = f"redis+sentinel://:s3cret%2Fa@{hosts}?sentinel_username=watcher"
    engine = RedisEngine(f"{url}&sentinel_password=s3cret%2Fb", clock=Clock())
    await engine.open()
    await enqueue(engine)
    await engine.close()
    for wrong in (f"{url}&sentinel_password=hidden", f"redis+sentinel://:s3cret%2Fa@{hosts}"):
        engine = RedisEngine(wrong, clock=Clock())
        with pytest.raises(EngineError, match="sentinel_password") as caught:
            await engine.open()
        assert "hidden" not in str(caught.value)
