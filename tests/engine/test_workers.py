"""Who counts as alive, and until when a worker is seen."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.ids import new_id
from tests.engine.test_leases import give_to_others, renew
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue, the_job


async def test_workers_are_told_by_their_names(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine, "steady")
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert (await the_job(engine, job_id)).worker == "steady"
    await engine.retire(worker)
    assert (await the_job(engine, job_id)).worker == "steady"
    clock.advance(LEASE + 1)
    [lost] = await engine.take_lost(10)
    assert lost.worker == "steady"
    clock.advance(3 * 86_400)
    await engine.prune(older_than=1)
    assert [each.worker for each in await engine.take_lost(10)] == ["steady"]
    await complete(engine, job)
    await engine.prune(older_than=86_400)
    assert await engine.workers() == []
    assert (await the_job(engine, job_id)).worker == "steady"


async def test_a_lapsed_lease_alone_does_not_stop_a_worker(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    clock.advance(LEASE + 1)
    assert [each.alive for each in await engine.workers()] == [False]
    [job] = await claim(engine, worker)
    assert job.id == job_id
    # Somebody notices: the job is lost to it.
    [lost] = await engine.take_lost(10)
    assert lost.job.id == job_id
    await enqueue(engine)
    assert await claim(engine, worker) == []


async def test_a_lapsed_lease_is_not_renewed_even_if_nobody_noticed(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    [before] = await engine.workers()
    clock.advance(LEASE + 1)
    assert not await renew(engine, worker, running=5)
    assert not await renew(engine, worker, running=5)
    [after] = await engine.workers()
    assert (after.heartbeat_at, after.lease_until) == (before.heartbeat_at, before.lease_until)
    assert (after.alive, after.running) == (False, 0)
    await enqueue(engine)
    assert await claim(engine, worker) == []
    [lost] = await engine.take_lost(10)
    assert lost.job.id == job_id
    # Nobody has taken over yet, so what it has done still counts.
    assert await complete(engine, job)


async def test_each_way_to_die_ends_claiming(engine: Engine, clock: Clock) -> None:
    replaced, retired = await a_worker(engine, "a"), await a_worker(engine, "b")
    for worker in (replaced, retired):
        await enqueue(engine)
        assert len(await claim(engine, worker)) == 1
    await enqueue(engine)
    successor = await a_worker(engine, "a")
    await engine.retire(retired)
    for worker in (replaced, retired, new_id()):
        assert await claim(engine, worker) == []
        assert not await renew(engine, worker)
    assert len(await claim(engine, successor)) == 1
    assert len(await engine.take_lost(10)) == 2


async def test_a_retired_worker_is_seen_as_long_as_it_holds_jobs(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    await claim(engine, worker)
    await engine.retire(worker)
    [seen] = await engine.workers()
    assert (seen.id, seen.alive) == (worker, False)
    await give_to_others(engine, await engine.take_lost(10))
    await engine.retire(worker)
    assert await engine.workers() == []


async def test_a_lapsed_worker_is_cleared_only_after_it_was_declared_dead(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    clock.advance(3 * 86_400)
    await engine.prune(older_than=1)
    assert [each.id for each in await engine.workers()] == [worker]
    await engine.take_lost(10)
    await engine.prune(older_than=1)
    assert [each.id for each in await engine.workers()] == [worker]
    clock.advance(86_400 + 60)
    await engine.prune(older_than=1)
    assert await engine.workers() == []


async def test_living_workers_come_first_then_by_name_then_the_newest(
    engine: Engine, clock: Clock
) -> None:
    old_b = await a_worker(engine, "b")
    await enqueue(engine)
    await claim(engine, old_b)
    clock.advance(1)
    dead_a = await a_worker(engine, "a")
    clock.advance(1)
    new_b = await a_worker(engine, "b")
    clock.advance(LEASE + 1)
    await engine.take_lost(10)
    clock.advance(1)
    newest_b, c = await a_worker(engine, "b"), await a_worker(engine, "c")
    seen = [each.id for each in await engine.workers()]
    assert seen == [newest_b, c, dead_a, new_b, old_b]


async def test_all_workers_that_died_long_ago_are_forgotten_at_once(
    engine: Engine, clock: Clock
) -> None:
    """Not some of them each minute: more may come each minute."""
    holding = await a_worker(engine, "holding")
    await enqueue(engine)
    [held] = await claim(engine, holding)
    for n in range(600):
        await a_worker(engine, f"gone-{n}")
    clock.advance(LEASE + 1)
    for _ in range(10):
        await engine.take_lost(10)
    clock.advance(86_400 + 1)
    await engine.prune(older_than=None)
    assert [each.name for each in await engine.workers()] == ["holding"]
    assert await complete(engine, held)
    await engine.prune(older_than=None)
    assert await engine.workers() == []
