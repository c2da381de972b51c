"""Entries of jobs that have to start by a time: who writes, skips, marks and forgets them."""

from __future__ import annotations

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.durable.awaited import AwaitedEvent
from headrace.model.insert_policy import EXPIRED, InsertPolicy
from headrace.model.outcome import Completed, Outcome, Released, Reserved, Settlement, Snoozed
from headrace.model.status import Status
from headrace.model.views import Expired
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.plans import explained, nodes
from tests.engine.postgres.test_lock_order import meeting
from tests.support.verbs import (
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    retry,
    settle,
    status,
    the_job,
)

NONE = Expired((), None)


@pytest.fixture
async def inside(postgres: PostgresEngine, raw: Raw) -> Raw:
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    return raw


async def entries(inside: Raw) -> int:
    found: int = await inside.fetchval("SELECT count(*) FROM expiry")
    return found


@pytest.mark.parametrize("outcome", [Released(), Reserved()])
@pytest.mark.parametrize("lane", [None, "l"])
async def test_a_job_that_runs_when_its_time_comes_expires_if_it_is_given_back_unstarted(
    postgres: PostgresEngine, clock: Clock, outcome: Outcome, lane: str | None
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres, expires_in=60, lane=lane)
    [job] = await claim(postgres, worker)
    clock.advance(61)
    # It is looked at once, and is in nobody's way afterwards.
    for _ in range(2):
        assert await postgres.expire(10) == NONE
    assert await settle(postgres, job, outcome)
    assert (await the_job(postgres, job_id)).expires_at is not None
    assert await claim(postgres, worker, 5) == []
    assert (await postgres.expire(10)).ids == (job_id,)
    assert (await the_job(postgres, job_id)).error == EXPIRED


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("awaits", [(), (AwaitedEvent("go"),)])
async def test_a_job_that_was_put_off_has_started(
    postgres: PostgresEngine, clock: Clock, early: bool, awaits: tuple[AwaitedEvent, ...]
) -> None:
    """Although no attempt was spent."""
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres, expires_in=60)
    [job] = await claim(postgres, worker)
    if not early:
        clock.advance(61)
        assert await postgres.expire(10) == NONE
    assert await settle(postgres, job, Snoozed(100, awaits))
    clock.advance(101)
    assert await postgres.expire(10) == NONE
    await postgres.promote_due(10)
    [again] = await claim(postgres, worker)
    assert (again.id, again.attempt) == (job_id, 1)
    # Given back, it is as it was before.
    await settle(postgres, again, Released())
    assert await postgres.expire(10) == NONE
    assert [job.id for job in await claim(postgres, worker)] == [job_id]


async def test_a_retry_is_claimed_although_its_entry_is_still_there(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres, expires_in=60)
    [job] = await claim(postgres, worker)
    clock.advance(61)
    assert await retry(postgres, job)
    assert [job.id for job in await claim(postgres, worker)] == [job_id]


async def test_jobs_whose_time_is_over_do_not_count_among_the_best_of_several_lines(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    reserved = await enqueue(postgres, task="a", priority=5)
    [job] = await claim(postgres, worker)
    await settle(postgres, job, Reserved())
    await postgres.insert([a_job(expires_in=60, priority=9) for _ in range(2)])
    others = [await enqueue(postgres) for _ in range(2)]
    clock.advance(61)
    assert [job.id for job in await claim(postgres, worker, 2)] == [reserved, others[0]]


async def test_a_reserved_job_whose_time_is_over_is_not_claimed(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    expired = [a_job(expires_in=60, priority=9, task=task) for task in ("a", "b") for _ in range(3)]
    await postgres.insert(expired)
    for job in await claim(postgres, worker, 2):
        assert await settle(postgres, job, Reserved())
    good = [a_job(task=task, priority=-n) for n, task in enumerate(("a", "b", "b"))]
    await postgres.insert(good)
    clock.advance(61)
    claimed = await claim(postgres, worker, 2)
    assert [job.id for job in claimed] == [job.id for job in good[:2]]
    assert set((await postgres.expire(10)).ids) == {job.id for job in expired}


async def test_who_runs_a_finished_job_again_sets_no_time(
    postgres: PostgresEngine, clock: Clock, inside: Raw
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres, expires_in=60, lane="l")
    [job] = await claim(postgres, worker)
    await complete(postgres, job)
    assert await entries(inside) == 1
    assert await postgres.rerun([job_id]) == [job_id]
    assert await entries(inside) == 0
    clock.advance(61)
    assert [job.id for job in await claim(postgres, worker)] == [job_id]


async def test_a_scheduled_job_that_is_run_now_keeps_its_time(
    postgres: PostgresEngine, clock: Clock
) -> None:
    job_id = await enqueue(postgres, expires_in=60, delay=100)
    assert await postgres.rerun([job_id]) == [job_id]
    clock.advance(61)
    assert (await postgres.expire(10)).ids == (job_id,)


@pytest.mark.parametrize("keep", [True, False])
async def test_a_time_is_part_of_the_callers_transaction(
    postgres: PostgresEngine, address: Address, clock: Clock, inside: Raw, keep: bool
) -> None:
    jobs = [
        a_job(expires_in=60),
        a_job(expires_at=await postgres.now() + 70, lane="l"),
        a_job(key="k"),
    ]
    connection = await asyncpg.connect(address.dsn)
    transaction = connection.transaction()
    await transaction.start()
    await postgres.insert_within(connection, jobs)
    clock.advance(61)
    assert await postgres.expire(10) == NONE
    await (transaction.commit() if keep else transaction.rollback())
    await connection.close()
    assert await entries(inside) == (2 if keep else 0)
    if keep:
        [first, second, third] = await postgres.get([job.id for job in jobs])
        assert first.expires_at is not None
        assert third.expires_at is None
        found = await postgres.expire(10)
        assert found.ids == (first.id,)
        assert found.next_in == pytest.approx(9, abs=5)
        clock.advance(10)
        assert (await postgres.expire(10)).ids == (second.id,)


async def test_what_follows_from_an_outcome_may_have_a_time(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    await enqueue(postgres, lane="l")
    [job] = await claim(postgres, worker)
    follow = a_job(expires_in=60, lane="l")
    await postgres.exchange([Settlement(job.id, job.token, Completed(), follow=(follow,))])
    clock.advance(61)
    assert await claim(postgres, worker) == []
    assert (await postgres.expire(10)).ids == (follow.id,)


async def test_entries_of_jobs_that_are_over_hold_up_nobody(
    postgres: PostgresEngine, clock: Clock, inside: Raw
) -> None:
    """One call forgets ten times as many of them as it may cancel, and comes to those behind."""
    worker = await a_worker(postgres)
    await postgres.insert([a_job(expires_in=10) for _ in range(80)])
    for job in await claim(postgres, worker, 80):
        await complete(postgres, job)
    late = await enqueue(postgres, expires_in=20)
    next_in = (await postgres.expire(10)).next_in
    assert next_in == pytest.approx(20, abs=5)
    clock.advance(21)
    found = await postgres.expire(10)
    assert (found.ids, found.next_in) == ((late,), None)
    assert await entries(inside) == 0


async def test_pruned_jobs_leave_no_entry(postgres: PostgresEngine, inside: Raw) -> None:
    worker = await a_worker(postgres)
    await postgres.insert([a_job(expires_in=1e6) for _ in range(3)])
    for job in await claim(postgres, worker, 2):
        await complete(postgres, job)
    assert await postgres.prune(keep=0) == 2
    assert await entries(inside) == 1


async def test_an_entry_that_an_older_program_left_is_forgotten(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    """One whose job it has pruned."""
    await inside.execute("INSERT INTO expiry (job_id, at) VALUES (gen_random_uuid(), now())")
    clock.advance(1)
    assert await postgres.expire(10) == NONE
    assert await entries(inside) == 0


async def test_a_job_that_was_put_off_before_it_is_locked_does_not_expire(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    job_id = await enqueue(postgres, expires_in=60)
    clock.advance(61)
    async with inside.transaction():
        await inside.execute("SELECT FROM job FOR UPDATE")
        await inside.execute("UPDATE expiry SET at = at + interval '1 hour'")
        called = await meeting(inside, postgres.expire(10))
    assert (await called).ids == ()
    assert await status(postgres, job_id) is Status.PENDING
    assert await entries(inside) == 1


async def test_a_job_that_is_claimed_before_it_is_locked_does_not_expire(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    """By an older program, or by one whose clock is behind."""
    job_id = await enqueue(postgres, expires_in=60)
    worker = await a_worker(postgres)
    clock.advance(61)
    async with inside.transaction():
        await inside.execute(
            "UPDATE job SET state = 3, token = 1, attempt = 1, worker = 'w', started_at = now(),"
            " holder = (SELECT number FROM worker)"
        )
        called = await meeting(inside, postgres.expire(10))
    assert (await called).ids == ()
    [job] = await postgres.claimed_by(worker)
    await settle(postgres, job, Released())
    assert (await postgres.expire(10)).ids == (job_id,)


async def test_a_job_that_has_started_before_it_is_locked_does_not_expire(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    """It was claimed, and is ready again for a retry."""
    job_id = await enqueue(postgres, expires_in=60)
    clock.advance(61)
    async with inside.transaction():
        await inside.execute("UPDATE job SET token = 1, attempt = 1")
        called = await meeting(inside, postgres.expire(10))
    assert (await called).ids == ()
    assert await status(postgres, job_id) is Status.PENDING


async def test_who_meets_another_that_ends_jobs_does_not_wait_long(
    postgres: PostgresEngine, inside: Raw, clock: Clock
) -> None:
    await enqueue(postgres, expires_in=60)
    clock.advance(61)
    async with inside.transaction():
        await inside.execute(
            "SELECT pg_advisory_xact_lock('job'::regclass::oid::integer, 2)",
        )
        found = await postgres.expire(10)
        assert found.ids == ()
        assert found.next_in is not None
        assert 0 < found.next_in < 1
    assert len((await postgres.expire(10)).ids) == 1


async def test_a_debounced_job_whose_new_time_has_come_is_ready_at_once(
    postgres: PostgresEngine, clock: Clock
) -> None:
    """Not only when somebody looks for due jobs. Its place in the line is its own."""
    policy = InsertPolicy(on_duplicate="debounce", max_wait=10)
    worker = await a_worker(postgres)
    for lane in (None, "l"):
        first = a_job(key=f"k{lane}", lane=lane, delay=9, policy=policy)
        await postgres.insert_by_policy(first)
        answer = await postgres.insert_by_policy(
            a_job(key=f"k{lane}", lane=lane, delay=0, policy=policy, args=b'{"n":2}')
        )
        assert answer.inserted is not None
        assert answer.inserted.id == first.id
        [job] = await claim(postgres, worker)
        assert (job.id, job.args) == (first.id, b'{"n":2}')
        await complete(postgres, job)


async def test_a_claim_looks_at_one_entry_while_no_time_is_over(
    postgres: PostgresEngine, engine_url: str
) -> None:
    """And at those of the jobs in front, when there is one whose time is."""
    worker = await a_worker(postgres)
    await postgres.insert([a_job(expires_in=3600) for _ in range(500)])

    async def seen(limit: int) -> tuple[int, float]:
        async with explained(engine_url) as (engine, plans):
            jobs = (await engine.exchange([], worker_id=worker, limit=limit)).jobs
            rows = sum(
                (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
                for _, plan in plans.heard
                for node in nodes(plan)
                if node.get("Relation Name") == "expiry"
            )
        return len(jobs), rows

    assert await seen(20) == (20, 0)
    await postgres.insert([a_job(expires_in=1e-6, priority=1) for _ in range(5)])
    claimed, rows = await seen(20)
    assert (claimed, rows <= 2 * 25 + 1) == (20, True)
