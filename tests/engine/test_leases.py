"""Workers that die, hang or come back: no job is lost, no late write counts."""

from __future__ import annotations

import asyncio

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.writes import Note
from headrace.model.outcome import Completed, Retry, Settlement
from headrace.model.status import Status
from headrace.model.views import LostJob
from headrace.model.worker import WorkerStats
from tests.engine.conftest import Opener
from tests.support.verbs import (
    A_FAILURE,
    LEASE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    status,
    the_job,
)


async def give_to_others(engine: Engine, lost: list[LostJob]) -> None:
    await engine.exchange([Settlement(j.job.id, j.job.token, Retry(A_FAILURE, 0)) for j in lost])


async def renew(engine: Engine, worker: str, **stats: float) -> bool:
    """Renew as the lease thread does."""

    def on_thread() -> bool:
        keeper = engine.keeper(worker, LEASE)
        try:
            return keeper.renew(WorkerStats(**stats)).alive  # type: ignore[arg-type]
        finally:
            keeper.close()

    return await asyncio.to_thread(on_thread)


async def test_nothing_is_lost_while_the_lease_lasts(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    await claim(engine, worker)
    clock.advance(LEASE - 5)
    assert await engine.take_lost(10) == []


async def test_a_renewed_lease_lasts_longer(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    await claim(engine, worker)
    for _ in range(3):
        clock.advance(LEASE - 5)
        assert await renew(engine, worker)
        assert await engine.take_lost(10) == []


async def test_jobs_of_a_silent_worker_are_found_and_run_elsewhere(
    engine: Engine, clock: Clock
) -> None:
    silent = await a_worker(engine, "silent")
    job_id = await enqueue(engine, lane="l")
    [job] = await claim(engine, silent)
    clock.advance(LEASE + 1)
    [lost] = await engine.take_lost(10)
    assert (lost.job.id, lost.job.token, lost.worker) == (job_id, job.token, "silent")
    assert (lost.job.attempt, lost.job.max_attempts, lost.job.on_crash) == (1, 4, "retry")
    assert LEASE < lost.age < LEASE + 60
    await give_to_others(engine, [lost])
    other = await a_worker(engine, "other")
    [again] = await claim(engine, other)
    assert (again.id, again.attempt) == (job_id, 2)
    # The silent worker wakes up and finishes: refused.
    assert not await complete(engine, job)
    assert await engine.write_progress([Note(job.id, job.token, progress=50)]) == (job_id,)
    assert await status(engine, job_id) is Status.RUNNING
    assert await complete(engine, again)


async def test_a_worker_declared_dead_cannot_renew_or_claim(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    clock.advance(LEASE + 1)
    await engine.take_lost(10)
    assert not await renew(engine, worker)
    assert await claim(engine, worker) == []
    assert len(await claim(engine, await a_worker(engine, "fresh"))) == 1


async def test_a_dead_worker_may_still_finish_before_anybody_took_over(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    clock.advance(LEASE + 1)
    lost = await engine.take_lost(10)
    assert await complete(engine, job)
    answer = await engine.exchange(
        [Settlement(each.job.id, each.job.token, Retry(A_FAILURE, 0)) for each in lost]
    )
    assert answer.refused == (job_id,)
    assert await status(engine, job_id) is Status.COMPLETED


async def test_two_sweeps_at_once_spend_one_attempt(
    engine: Engine, open_another: Opener, clock: Clock
) -> None:
    other = await open_another()
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(50)])
    await claim(engine, worker, 50)
    clock.advance(LEASE + 1)
    both = await asyncio.gather(engine.take_lost(100), other.take_lost(100))
    await asyncio.gather(give_to_others(engine, both[0]), give_to_others(other, both[1]))
    again = await claim(engine, await a_worker(engine, "next"), 100)
    assert [job.attempt for job in again] == [2] * 50


async def test_lost_answers_in_bounded_steps(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(25)])
    await claim(engine, worker, 25)
    clock.advance(LEASE + 1)
    found: set[str] = set()
    while lost := await engine.take_lost(10):
        assert len(lost) <= 10
        found |= {each.job.id for each in lost}
        await engine.exchange(
            [Settlement(each.job.id, each.job.token, Completed()) for each in lost]
        )
    assert len(found) == 25


async def test_a_restart_under_the_same_name_takes_its_jobs_back_at_once(engine: Engine) -> None:
    before = await a_worker(engine, "steady")
    job_id = await enqueue(engine)
    await claim(engine, before)
    after = await a_worker(engine, "steady")
    [lost] = await engine.take_lost(10)
    assert lost.job.id == job_id
    await give_to_others(engine, [lost])
    [again] = await claim(engine, after)
    assert again.id == job_id
    assert not await renew(engine, before)
    assert await renew(engine, after)


async def test_a_retired_worker_gives_its_jobs_back_at_once(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    await claim(engine, worker)
    await engine.retire(worker)
    [lost] = await engine.take_lost(10)
    assert lost.job.id == job_id


async def test_a_worker_that_retires_with_nothing_is_gone(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.retire(worker)
    assert await engine.workers() == []
    await engine.retire(worker)


async def test_held_jobs_are_known(engine: Engine) -> None:
    worker = await a_worker(engine)
    other = await a_worker(engine, "other")
    await engine.insert([a_job() for _ in range(3)])
    mine = await claim(engine, worker, 2)
    await claim(engine, other, 1)
    held = await engine.claimed_by(worker)
    assert sorted((job.id, job.token) for job in held) == sorted((j.id, j.token) for j in mine)
    assert bytes(held[0].args) == b"{}"
    await complete(engine, mine[0])
    assert [job.id for job in await engine.claimed_by(worker)] == [mine[1].id]


async def test_workers_are_seen_with_what_they_told(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(
        engine, "seen", queues=("a", "b"), slots=7, host="h", pid=42, version="1.2"
    )
    await a_worker(engine, "another")
    await renew(engine, worker, running=3, memory_bytes=1000, cpu_percent=12.5)
    seen = next(each for each in await engine.workers() if each.name == "seen")
    assert (seen.id, seen.queues, seen.slots, seen.host, seen.pid) == (
        worker,
        ("a", "b"),
        7,
        "h",
        42,
    )
    assert (seen.version, seen.running, seen.memory_bytes, seen.cpu_percent) == (
        "1.2",
        3,
        1000,
        12.5,
    )
    assert seen.alive
    assert seen.healthy
    assert seen.lease_until > seen.heartbeat_at >= seen.started_at
    clock.advance(LEASE + 1)
    await engine.take_lost(1)
    assert [each.alive for each in await engine.workers()] == [False, False]


async def test_renewal_tells_of_cancelled_jobs(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    await claim(engine, worker)
    await engine.cancel([job_id])

    def on_thread() -> tuple[str, ...]:
        keeper = engine.keeper(worker, LEASE)
        try:
            return keeper.renew(WorkerStats()).cancelled
        finally:
            keeper.close()

    assert await asyncio.to_thread(on_thread) == (job_id,)
    assert (await the_job(engine, job_id)).cancel_requested


async def test_long_dead_workers_are_cleared_when_they_hold_nothing(
    engine: Engine, clock: Clock
) -> None:
    idle = await a_worker(engine, "idle")
    busy = await a_worker(engine, "busy")
    await enqueue(engine)
    await claim(engine, busy)
    clock.advance(LEASE + 1)
    await engine.take_lost(1)
    clock.advance(2 * 86_400)
    await engine.prune(older_than=1)
    assert [each.id for each in await engine.workers()] == [busy]
    assert idle != busy


async def test_a_lease_from_when_the_clock_was_ahead_lasts_no_longer_than_another(
    engine: Engine, clock: Clock
) -> None:
    clock.offset = 86_400.0
    dead, alive = await a_worker(engine, name="dead"), await a_worker(engine, name="alive")
    await enqueue(engine)
    [job] = await claim(engine, dead)
    clock.offset = 0.0
    assert await engine.take_lost(10) == []
    clock.advance(LEASE - 5)
    assert await engine.take_lost(10) == []
    assert await renew(engine, alive)
    clock.advance(10)
    assert [each.job.id for each in await engine.take_lost(10)] == [job.id]
    assert await renew(engine, alive)
