"""A job that comes in is handed to a worker that has nothing to do, and to nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from headrace.clock import Clock
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Released
from headrace.model.status import Status
from tests.engine.redis.conftest import Starter, connections, eventually
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, settle, the_job


class Listener:
    """Workers of one process, and what they are handed."""

    def __init__(self, engine: RedisEngine) -> None:
        self.engine = engine
        self.jobs: asyncio.Queue[tuple[str, Sequence[ClaimedJob]]] = asyncio.Queue()
        self.worked = 0

    async def listen(self) -> None:
        await self.engine.listen(
            self._work, lambda _: None, lambda worker, jobs: self.jobs.put_nowait((worker, jobs))
        )

    async def handed(self) -> tuple[str, ClaimedJob]:
        """The next job that comes by itself."""
        worker, [job] = await asyncio.wait_for(self.jobs.get(), 60)
        return worker, job

    def _work(self) -> None:
        self.worked += 1

    async def heard_all(self) -> None:
        """Everything that was published so far has arrived."""
        before = self.worked
        await self.engine._link.call("PUBLISH", self.engine.key("signals"), "work")

        async def heard() -> bool:
            return self.worked > before

        await eventually(heard)


@pytest.fixture
async def listener(redis_engine: RedisEngine) -> AsyncIterator[Listener]:
    listener = Listener(redis_engine)
    await listener.listen()
    yield listener
    assert listener.jobs.empty()


async def an_idle_worker(
    engine: RedisEngine, name: str = "worker", queues: Sequence[str] | None = None
) -> str:
    worker = await a_worker(engine, name)
    assert await claim(engine, worker, queues=queues) == []
    return worker


async def test_a_job_is_handed_to_who_has_nothing_to_do(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    worker = await an_idle_worker(redis_engine)
    job_id = await enqueue(redis_engine, args=b'{"n":1}', key="k", priority=3, meta=b'{"a":1}')
    told, job = await listener.handed()
    assert (told, job.id, job.token, job.attempt) == (worker, job_id, 1, 1)
    assert (job.args, job.key, job.priority, job.meta) == (b'{"n":1}', "k", 3, b'{"a":1}')
    assert await redis_engine.claimed_by(worker) == [job]
    seen = await the_job(redis_engine, job_id)
    assert (seen.status, seen.worker) == (Status.RUNNING, "worker")
    assert [view.running for view in await redis_engine.queues()] == [1]
    assert await claim(redis_engine, worker) == []
    assert await complete(redis_engine, job)
    assert (await the_job(redis_engine, job_id)).status is Status.COMPLETED


async def test_it_is_the_same_job_as_a_claim_answers(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    worker = await an_idle_worker(redis_engine)
    await enqueue(redis_engine, args=b'{"n":1}')
    _, handed = await listener.handed()
    assert await settle(redis_engine, handed, Released())
    [claimed] = await claim(redis_engine, worker)
    handed.token, handed.wait, claimed.wait = 2, 0.0, 0.0
    assert handed == claimed
    assert await complete(redis_engine, claimed)


async def test_only_one_comes_before_the_worker_looks_again(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    worker = await an_idle_worker(redis_engine)
    first, second = await enqueue(redis_engine), await enqueue(redis_engine)
    assert (await listener.handed())[1].id == first
    await listener.heard_all()
    [job] = await claim(redis_engine, worker)
    assert job.id == second
    third = await enqueue(redis_engine)
    await listener.heard_all()
    [job] = await claim(redis_engine, worker, limit=2)
    assert job.id == third
    assert await claim(redis_engine, worker) == []
    fourth = await enqueue(redis_engine)
    assert (await listener.handed())[1].id == fourth


@pytest.mark.parametrize(
    "fields", [{"lane": "l"}, {"delay": 60.0}, {"run_at": 4e9}], ids=["lane", "delay", "run_at"]
)
async def test_a_job_that_may_have_to_wait_is_not_handed_over(
    redis_engine: RedisEngine, listener: Listener, fields: dict[str, object]
) -> None:
    await an_idle_worker(redis_engine)
    await enqueue(redis_engine, **fields)
    await listener.heard_all()


async def test_several_at_once_are_not_handed_over(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    await an_idle_worker(redis_engine)
    await redis_engine.insert([a_job(), a_job()])
    await listener.heard_all()


async def test_a_better_job_that_is_ready_comes_first(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    await an_idle_worker(redis_engine)
    await redis_engine.insert([a_job(), a_job()])
    await enqueue(redis_engine)
    await listener.heard_all()


async def test_a_paused_queue_hands_out_nothing(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    await an_idle_worker(redis_engine)
    await redis_engine.pause("default", True)
    await enqueue(redis_engine)
    await listener.heard_all()


async def test_a_worker_is_handed_jobs_of_its_queues_only(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    worker = await an_idle_worker(redis_engine, queues=["a", "b"])
    job_id = await enqueue(redis_engine, queue="b")
    told, job = await listener.handed()
    assert (told, job.id) == (worker, job_id)
    assert await claim(redis_engine, worker, queues=["a", "b"]) == []
    await enqueue(redis_engine, queue="ab")
    await listener.heard_all()


async def test_a_dead_worker_is_handed_nothing(
    redis_engine: RedisEngine, listener: Listener, clock: Clock
) -> None:
    await redis_engine.retire(await an_idle_worker(redis_engine, "retired"))
    await an_idle_worker(redis_engine, "replaced")
    await a_worker(redis_engine, "replaced")
    await an_idle_worker(redis_engine, "lapsed")
    clock.advance(LEASE + 1)
    await enqueue(redis_engine)
    await listener.heard_all()


async def test_who_asks_for_nothing_is_handed_nothing(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    worker = await an_idle_worker(redis_engine)
    await redis_engine.exchange([], worker_id=worker, limit=0)
    await enqueue(redis_engine)
    await listener.heard_all()


async def test_who_does_not_hear_is_passed_over(
    redis_engine: RedisEngine, listener: Listener, engine_url: str, clock: Clock
) -> None:
    gone = RedisEngine(engine_url, clock=clock)
    await gone.open()
    await Listener(gone).listen()
    for n in range(3):
        await an_idle_worker(gone, f"gone{n}")
    await gone.close()
    worker = await an_idle_worker(redis_engine)
    job_id = await enqueue(redis_engine)
    told, job = await listener.handed()
    assert (told, job.id) == (worker, job_id)


async def test_who_only_wants_signals_is_handed_nothing(redis_engine: RedisEngine) -> None:
    listener = Listener(redis_engine)
    await redis_engine.listen(listener._work, lambda _: None)
    await an_idle_worker(redis_engine)
    await enqueue(redis_engine)
    await listener.heard_all()
    assert listener.jobs.empty()


async def test_a_repeated_call_finds_the_job_that_was_handed_over(
    redis_engine: RedisEngine, listener: Listener
) -> None:
    worker = await an_idle_worker(redis_engine)
    job = a_job(key="k")
    assert [each.created for each in await redis_engine.insert([job])] == [True]
    await listener.handed()
    assert await claim(redis_engine, worker) == []
    assert [each.created for each in await redis_engine.insert([job])] == [False]
    again = await redis_engine.insert([a_job(key="k")])
    assert [(each.id, each.created) for each in again] == [(job.id, False)]
    await listener.heard_all()


async def test_who_heals_is_told_that_jobs_may_be_lost(
    redis_engine: RedisEngine, listener: Listener, admin: RedisConnection
) -> None:
    for connection in await connections(admin, redis_engine.address.namespace):
        await admin.call("CLIENT", "KILL", "ID", connection)
    assert await asyncio.wait_for(listener.jobs.get(), 60) == ("", [])


async def test_looking_again_writes_nothing(start_server: Starter) -> None:
    server = start_server()
    engine = RedisEngine(server.store, clock=Clock())
    await engine.open()
    await Listener(engine).listen()
    worker = await an_idle_worker(engine)

    async def changes() -> int:
        info = (await engine._link.call("INFO", "persistence")).decode()
        return int(info.split("rdb_changes_since_last_save:")[1].split()[0])

    before = await changes()
    for _ in range(3):
        assert await claim(engine, worker) == []
    assert await changes() == before
    await engine.close()
