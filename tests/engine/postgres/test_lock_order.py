"""Who waits for whom: jobs without a lane, then lanes, then their jobs; what is looked at again.

A stranger holds a lock, a verb runs into it, and the stranger tries what would be a deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.sql import with_set_names
from headrace.model.durable.awaited import EVENT, AwaitedEvent
from headrace.model.durable.writes import Note
from headrace.model.outcome import Completed, Retry, Settlement, Snoozed
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    settle,
    status,
    the_job,
)

T = TypeVar("T")
GO = AwaitedEvent("go")


@pytest.fixture
async def inside(postgres: PostgresEngine, raw: Raw) -> Raw:
    """The stranger, in our schema."""
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    return raw


async def meeting(raw: Raw, verb: Awaitable[T]) -> asyncio.Future[T]:
    """Start a verb that has to wait for the stranger's transaction; answer it when it does."""
    mine = await raw.fetchval("SELECT pg_backend_pid()")
    blocked = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
    called = asyncio.ensure_future(verb)
    async with asyncio.timeout(20):
        while not await raw.fetchval(blocked, mine):
            assert not called.done(), "it did not wait"
            await asyncio.sleep(0.01)
    return called


async def retries_that_keep_their_place(engine: Engine, worker: str) -> list[str]:
    """One in each of two lanes, due in a minute."""
    for lane in ("a", "b"):
        await enqueue(engine, lane=lane)
    jobs = await claim(engine, worker, 2)
    for job in jobs:
        await settle(engine, job, Retry(A_FAILURE, 60))
    return [job.id for job in jobs]


async def suspended(engine: Engine, worker: str) -> list[str]:
    """One in each of two lanes, for which an event has come."""
    for lane in ("a", "b"):
        await enqueue(engine, lane=lane)
    jobs = await claim(engine, worker, 2)
    for job in jobs:
        await settle(engine, job, Snoozed(60, (GO,)))
        await engine.signal(job.id, "go", b"1")
    return [job.id for job in jobs]


async def expired(engine: Engine, worker: str) -> list[str]:
    """One in each of two lanes, of which one waits, that should have started within a minute."""
    await enqueue(engine, lane="b")
    return [await enqueue(engine, lane=lane, expires_in=60) for lane in ("a", "b")]


Maker = Callable[[Engine, str], Awaitable[list[str]]]
VERBS: dict[str, tuple[Maker, Callable[[Engine, list[str]], Awaitable[Any]]]] = {
    "due": (retries_that_keep_their_place, lambda engine, ids: engine.promote_due(10)),
    "wake": (suspended, lambda engine, ids: engine.wake(ids)),
    "cancel": (retries_that_keep_their_place, lambda engine, ids: engine.cancel(ids)),
    "rerun": (retries_that_keep_their_place, lambda engine, ids: engine.rerun(ids)),
    "expire": (expired, lambda engine, ids: engine.expire(10)),
}


@pytest.mark.parametrize("verb", list(VERBS))
@pytest.mark.parametrize("lane", ["a", "b"])
async def test_no_job_of_a_lane_is_locked_before_all_lanes_are(
    postgres: PostgresEngine, inside: Raw, clock: Clock, verb: str, lane: str
) -> None:
    make, call = VERBS[verb]
    ids = await make(postgres, await a_worker(postgres))
    clock.advance(61)
    async with inside.transaction():
        await inside.execute("SELECT FROM lane WHERE lane = $1 FOR UPDATE", lane)
        called = await meeting(inside, call(postgres, ids))
        await inside.execute("SELECT FROM job FOR UPDATE NOWAIT")
    await called
    moved = Status.CANCELLED if verb in ("cancel", "expire") else Status.PENDING
    assert [await status(postgres, each) for each in ids] == [moved, moved]


@pytest.mark.parametrize("lanes", [(None, None), ("a", "b"), ("a", None), (None, "a")])
@pytest.mark.parametrize("verb", ["settle", "note", "cancel"])
async def test_running_jobs_are_locked_in_one_order(
    postgres: PostgresEngine, inside: Raw, lanes: tuple[str | None, str | None], verb: str
) -> None:
    """Those without a lane first, each kind by id, whatever happens to them."""
    worker = await a_worker(postgres)
    await postgres.insert([a_job(lane=lane) for lane in lanes])
    one, two = sorted(await claim(postgres, worker, 2), key=lambda job: job.id)
    first, second = sorted((one, two), key=lambda job: (job.lane is not None, job.id))

    async def call() -> None:
        match verb:
            case "settle":
                # Settled by two statements, of which the first takes the second job.
                await postgres.exchange(
                    [
                        Settlement(first.id, first.token, Retry(A_FAILURE, 60)),
                        Settlement(second.id, second.token, Completed()),
                    ]
                )
            case "note":
                await postgres.write_progress(
                    [Note(job.id, job.token, progress=1.0) for job in (two, one)]
                )
            case "cancel":
                await postgres.cancel([two.id, one.id])

    lock = "SELECT FROM job WHERE id = $1 FOR UPDATE NOWAIT"
    async with inside.transaction():
        await inside.execute(lock, first.id)
        called = await meeting(inside, call())
        await inside.execute(lock, second.id)
    await called


@pytest.mark.parametrize("lanes", [(None, None), ("a", "b")])
async def test_a_cancel_locks_running_and_pending_jobs_in_one_order(
    postgres: PostgresEngine, inside: Raw, lanes: tuple[str | None, str | None]
) -> None:
    worker = await a_worker(postgres)
    running, pending = [await enqueue(postgres, lane=lane) for lane in lanes]
    await claim(postgres, worker)
    lock = "SELECT FROM job WHERE id = $1 FOR UPDATE NOWAIT"
    async with inside.transaction():
        await inside.execute(lock, running)
        cancelling = await meeting(inside, postgres.cancel([running, pending]))
        await inside.execute(lock, pending)
    assert await cancelling == {running: False, pending: True}


async def test_what_a_job_awaits_is_looked_at_again_when_it_is_locked(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """Another may have woken it meanwhile, and it may wait for something else now."""
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres)
    [job] = await claim(postgres, worker)
    await settle(postgres, job, Snoozed(60, (GO,)))
    await postgres.signal(job_id, "go", b"1")
    async with inside.transaction():
        await inside.execute(
            "UPDATE job SET awaits = $2 WHERE id = $1", job_id, '[{"type":"event","name":"more"}]'
        )
        waking = await meeting(inside, postgres.wake([job_id]))
    assert await waking == []
    assert await status(postgres, job_id) is Status.SCHEDULED
    await postgres.signal(job_id, "more", b"1")
    assert await postgres.wake([job_id]) == [job_id]


async def test_of_many_who_wake_a_job_one_does(
    postgres: PostgresEngine, open_another: Opener
) -> None:
    doors = [postgres, *[await open_another() for _ in range(3)]]
    worker = await a_worker(postgres)
    for lane in (None, "l"):
        for _ in range(10):
            job_id = await enqueue(postgres, lane=lane)
            [job] = await claim(postgres, worker)
            await settle(postgres, job, Snoozed(60, (GO,)))
            await postgres.signal(job_id, "go", b"1")
            answers = await asyncio.gather(*(door.wake([job_id]) for door in doors))
            assert sorted(answers) == [[], [], [], [job_id]]
            [job] = await claim(postgres, worker)
            await complete(postgres, job)


async def test_an_event_waits_for_an_outcome_that_is_being_recorded(
    postgres: PostgresEngine, inside: Raw
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres)
    [job] = await claim(postgres, worker)
    finish = """
        SELECT * FROM exchange(0, ARRAY[$1::uuid], ARRAY[$2::integer], '{}', '{}',
            ARRAY['1'::bytea], '{}', '{}', '{}', '{}', false, NULL, NULL, 0, 0)
    """
    async with inside.transaction():
        await inside.execute(with_set_names(finish), job.id, job.token)
        signalling = await meeting(inside, postgres.signal(job_id, "late", b"1"))
    assert await signalling == "finished"
    assert await postgres.entries(job_id, EVENT) == []


async def test_a_job_can_be_claimed_while_an_event_is_delivered(
    postgres: PostgresEngine, inside: Raw
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres)
    async with inside.transaction():
        deliver = with_set_names("SELECT signal_job(0, $1, 'go', '1')")
        assert await inside.fetchval(deliver, job_id) == "delivered"
        [job] = await claim(postgres, worker)
    assert [entry.name for entry in await postgres.entries(job.id)] == ["go"]
    assert (await the_job(postgres, job.id)).token == 1


async def test_the_lanes_of_what_follows_are_locked_with_those_of_what_settles(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """Lanes are locked in the order of names, whichever of them the followers have."""
    worker = await a_worker(postgres)
    for lane in ("b", "a"):
        await enqueue(postgres, lane=lane)
    by_lane = {job.lane: job for job in await claim(postgres, worker, 2)}
    job = by_lane["b"]
    follow = (a_job(lane="a"),)
    async with inside.transaction():
        await inside.execute("SELECT FROM lane WHERE lane = 'a' FOR UPDATE")
        called = await meeting(
            inside,
            postgres.exchange([Settlement(job.id, job.token, Completed(), follow=follow)]),
        )
        # With the lane of the settled job locked first, each would wait for the other.
        await inside.execute("SELECT FROM lane WHERE lane = 'b' FOR UPDATE NOWAIT")
        await inside.execute("SELECT FROM job WHERE lane = 'b' FOR UPDATE NOWAIT")
    assert (await asyncio.wait_for(called, 60)).refused == ()
    assert await status(postgres, follow[0].id) is Status.PENDING


async def test_outcomes_whose_followers_cross_lanes_all_count(
    postgres: PostgresEngine, open_another: Opener
) -> None:
    """Many at once, each from one lane into another, while others settle and insert."""
    other = await open_another()
    worker = await a_worker(postgres)
    lanes = [f"l{n}" for n in range(6)]
    follow: list[str] = []
    for _ in range(5):
        await postgres.insert([a_job(lane=lane) for lane in lanes])
        jobs = await claim(postgres, worker, 6)
        calls = []
        for n, job in enumerate(jobs):
            assert job.lane is not None
            where = lanes[-1 - lanes.index(job.lane)]
            next_one = a_job(lane=where, key=f"{job.id}", queue="default")
            follow.append(next_one.id)
            engine = (postgres, other)[n % 2]
            settlement = Settlement(job.id, job.token, Completed(), follow=(next_one,))
            calls.append(engine.exchange([settlement]))
        answers = await asyncio.wait_for(asyncio.gather(*calls), 30)
        assert all(answer.refused == () for answer in answers)
    assert len(await postgres.get(follow)) == len(follow)
