"""New jobs that give way to others, or others to them: by their key, and by a lane that is full."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.insert_policy import InsertPolicy, replaced_by
from headrace.model.job import NewJob, PolicyInserted
from headrace.model.outcome import Snoozed
from headrace.model.status import State, Status
from tests.engine.conftest import Opener
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

REPLACE = InsertPolicy(on_duplicate="replace")
DEBOUNCE = InsertPolicy(on_duplicate="debounce")


def with_key(policy: InsertPolicy, **fields: object) -> NewJob:
    return a_job(**{"key": "k", "policy": policy, **fields})


def in_lane(when_full: str, **fields: object) -> NewJob:
    policy = InsertPolicy(when_full=when_full)  # type: ignore[arg-type]
    return a_job(**{"lane": "x", "policy": policy, **fields})


async def put(engine: Engine, job: NewJob) -> PolicyInserted:
    return await engine.insert_by_policy(job)


async def made(engine: Engine, job: NewJob) -> str:
    """Store a job that has to be new."""
    answer = await put(engine, job)
    assert answer.inserted is not None
    assert (answer.inserted.id, answer.inserted.created) == (job.id, True)
    return job.id


async def test_without_a_duplicate_it_is_an_insert(engine: Engine) -> None:
    job = with_key(REPLACE, args=b'{"a":1}', priority=3, lane="l", meta=b'{"m":1}', delay=0)
    await made(engine, job)
    stored = await the_job(engine, job.id)
    assert (stored.args, stored.priority, stored.lane, stored.meta, stored.key) == (
        {"a": 1},
        3,
        "l",
        {"m": 1},
        "k",
    )
    worker = await a_worker(engine)
    [claimed] = await claim(engine, worker)
    assert (claimed.id, claimed.args) == (job.id, b'{"a":1}')


@pytest.mark.parametrize("policy", [REPLACE, DEBOUNCE, InsertPolicy(window=60)])
async def test_an_id_that_exists_changes_nothing(engine: Engine, policy: InsertPolicy) -> None:
    first = with_key(policy, args=b'{"a":1}', delay=10)
    await made(engine, first)
    again = with_key(policy, id=first.id, args=b'{"a":2}', delay=20)
    answer = await put(engine, again)
    assert answer.inserted is not None
    assert (answer.inserted.id, answer.inserted.created, answer.cancelled) == (first.id, False, ())
    assert (await the_job(engine, first.id)).args == {"a": 1}


# Windows


async def test_within_its_window_a_key_returns_the_job_that_has_it(
    engine: Engine, clock: Clock
) -> None:
    policy = InsertPolicy(window=60)
    first = await made(engine, with_key(policy))
    clock.advance(59)
    answer = await put(engine, with_key(policy))
    assert answer.inserted is not None
    assert (answer.inserted.id, answer.inserted.created) == (first, False)
    clock.advance(2)
    second = await made(engine, with_key(policy))
    # From now on the key belongs to the second, for every kind of insert.
    [found] = await engine.insert([a_job(key="k")])
    assert (found.id, found.created) == (second, False)
    assert await status(engine, first) is Status.PENDING


async def test_a_window_counts_from_when_the_job_was_stored_also_after_its_end(
    engine: Engine, clock: Clock
) -> None:
    policy = InsertPolicy(window=60)
    worker = await a_worker(engine)
    first = await made(engine, with_key(policy))
    [job] = await claim(engine, worker)
    await complete(engine, job)
    clock.advance(30)
    answer = await put(engine, with_key(policy))
    assert answer.inserted is not None
    assert answer.inserted.id == first
    clock.advance(31)
    await made(engine, with_key(policy))


async def test_windows_are_of_their_task_and_key(engine: Engine) -> None:
    policy = InsertPolicy(window=60)
    await made(engine, with_key(policy))
    await made(engine, with_key(policy, key="other"))
    await made(engine, with_key(policy, task="other"))


async def test_pruning_the_old_job_leaves_the_key_with_the_new_one(
    engine: Engine, clock: Clock
) -> None:
    policy = InsertPolicy(window=60)
    worker = await a_worker(engine)
    await made(engine, with_key(policy))
    [job] = await claim(engine, worker)
    await complete(engine, job)
    clock.advance(61)
    second = await made(engine, with_key(policy))
    assert await engine.prune(older_than=1) == 1
    [found] = await engine.insert([a_job(key="k")])
    assert (found.id, found.created) == (second, False)


async def test_a_rerun_does_not_take_the_key_back(engine: Engine, clock: Clock) -> None:
    policy = InsertPolicy(window=60)
    worker = await a_worker(engine)
    first = await made(engine, with_key(policy))
    [job] = await claim(engine, worker)
    await complete(engine, job)
    clock.advance(61)
    second = await made(engine, with_key(policy))
    assert await engine.rerun([first]) == [first]
    [found] = await engine.insert([a_job(key="k")])
    assert found.id == second
    assert (await the_job(engine, first)).key == "k"


# Replace


@pytest.mark.parametrize("delay", [0.0, 100.0])
async def test_replace_cancels_the_one_that_has_not_started(engine: Engine, delay: float) -> None:
    first = await made(engine, with_key(REPLACE, delay=delay))
    second = with_key(REPLACE, args=b'{"a":2}')
    answer = await put(engine, second)
    assert answer.inserted is not None
    assert (answer.inserted.id, answer.inserted.created) == (second.id, True)
    assert (answer.cancelled, answer.stopping) == ((first,), ())
    gone = await the_job(engine, first)
    assert (gone.status, gone.error) == (Status.CANCELLED, replaced_by(second.id))
    worker = await a_worker(engine)
    assert [job.id for job in await claim(engine, worker, 5)] == [second.id]
    [found] = await engine.insert([a_job(key="k")])
    assert found.id == second.id


async def test_replace_leaves_one_that_has_started(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await made(engine, with_key(REPLACE))
    [running] = await claim(engine, worker)
    second = await made(engine, with_key(REPLACE))
    assert await status(engine, first) is Status.RUNNING
    assert await complete(engine, running)
    assert await status(engine, second) is Status.PENDING


async def test_replace_leaves_one_that_waits_for_a_retry(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await made(engine, with_key(REPLACE))
    [running] = await claim(engine, worker)
    await retry(engine, running, 100)
    answer = await put(engine, with_key(REPLACE))
    assert answer.cancelled == ()
    assert await status(engine, first) is Status.SCHEDULED


@pytest.mark.parametrize("policy", [REPLACE, DEBOUNCE])
async def test_a_job_that_sleeps_has_started(engine: Engine, policy: InsertPolicy) -> None:
    """Its attempt was given back, but its stages are those of its own arguments."""
    worker = await a_worker(engine)
    first = await made(engine, with_key(policy, args=b'{"n":1}'))
    [running] = await claim(engine, worker)
    await settle(engine, running, Snoozed(100.0))
    second = await made(engine, with_key(policy, args=b'{"n":2}', delay=5))
    job = await the_job(engine, first)
    assert (job.status, job.args) == (Status.SCHEDULED, {"n": 1})
    assert await status(engine, second) is Status.SCHEDULED


async def test_the_place_of_the_replaced_one_is_free_before_the_new_one_comes(
    engine: Engine,
) -> None:
    first = await made(engine, with_key(REPLACE, lane="x"))
    other = await enqueue(engine, lane="x")
    second = await made(engine, with_key(REPLACE, lane="x"))
    worker = await a_worker(engine)
    [one] = await claim(engine, worker, 5)
    assert one.id == other
    await complete(engine, one)
    [two] = await claim(engine, worker, 5)
    assert two.id == second
    assert await status(engine, first) is Status.CANCELLED


async def test_replace_may_come_into_another_lane_and_queue(engine: Engine) -> None:
    await made(engine, with_key(REPLACE, lane="x", queue="a"))
    waiting = await enqueue(engine, lane="x", queue="a")
    second = await made(engine, with_key(REPLACE, lane="y", queue="b"))
    worker = await a_worker(engine)
    assert {job.id for job in await claim(engine, worker, 5)} == {waiting, second}


# Debounce


async def test_debounce_keeps_one_job_with_the_last_arguments(engine: Engine, clock: Clock) -> None:
    policy = InsertPolicy(on_duplicate="debounce", max_wait=100)
    first = await made(engine, with_key(policy, args=b'{"n":0}', delay=30))
    for n in range(1, 5):
        clock.advance(20)
        answer = await put(
            engine, with_key(policy, args=b'{"n":%d}' % n, meta=b'{"m":%d}' % n, delay=30)
        )
        assert answer.inserted is not None
        assert (answer.inserted.id, answer.inserted.created) == (first, False)
        assert answer.cancelled == ()
        assert (await engine.promote_due(10)).moved == 0
    job = await the_job(engine, first)
    assert (job.args, job.meta, job.status) == ({"n": 4}, {"m": 4}, Status.SCHEDULED)
    # Stored 80 s ago; due 30 s after the last call, but at most 100 s after the first.
    due_in = job.run_at.timestamp() - await engine.now()
    assert due_in == pytest.approx(20, abs=1)
    clock.advance(21)
    assert (await engine.promote_due(10)).moved == 1
    worker = await a_worker(engine)
    [claimed] = await claim(engine, worker)
    assert (claimed.id, claimed.args, claimed.meta) == (first, b'{"n":4}', b'{"m":4}')


async def test_without_a_longest_wait_each_call_puts_it_off(engine: Engine, clock: Clock) -> None:
    first = await made(engine, with_key(DEBOUNCE, delay=30))
    for _ in range(20):
        clock.advance(29)
        answer = await put(engine, with_key(DEBOUNCE, delay=30))
        assert answer.inserted is not None
        assert answer.inserted.id == first
    assert (await engine.promote_due(10)).moved == 0


async def test_one_that_is_due_is_not_put_off_but_gets_the_arguments(
    engine: Engine, clock: Clock
) -> None:
    first = await made(engine, with_key(DEBOUNCE, delay=30, args=b'{"n":1}'))
    clock.advance(31)
    await engine.promote_due(10)
    answer = await put(engine, with_key(DEBOUNCE, delay=30, args=b'{"n":2}'))
    assert answer.inserted is not None
    assert answer.inserted.id == first
    worker = await a_worker(engine)
    [claimed] = await claim(engine, worker)
    assert (claimed.id, claimed.args) == (first, b'{"n":2}')


async def test_after_it_has_started_a_call_makes_a_new_job(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    first = await made(engine, with_key(DEBOUNCE, delay=0))
    [running] = await claim(engine, worker)
    second = await made(engine, with_key(DEBOUNCE, delay=30))
    assert await complete(engine, running)
    assert await status(engine, first) is Status.COMPLETED
    assert await status(engine, second) is Status.SCHEDULED


async def test_debounce_in_a_lane_keeps_the_place(engine: Engine) -> None:
    first = await made(engine, with_key(DEBOUNCE, lane="x", args=b'{"n":1}'))
    behind = await enqueue(engine, lane="x")
    answer = await put(engine, with_key(DEBOUNCE, lane="x", args=b'{"n":2}', delay=50))
    assert answer.inserted is not None
    assert answer.inserted.id == first
    worker = await a_worker(engine)
    [claimed] = await claim(engine, worker, 5)
    assert (claimed.id, claimed.args) == (first, b'{"n":2}')
    await complete(engine, claimed)
    [claimed] = await claim(engine, worker, 5)
    assert claimed.id == behind


async def test_debounce_into_another_lane_replaces(engine: Engine) -> None:
    first = await made(engine, with_key(DEBOUNCE, lane="x", delay=50))
    second = with_key(DEBOUNCE, lane="y", delay=50)
    answer = await put(engine, second)
    assert answer.cancelled == (first,)
    assert (await the_job(engine, second.id)).lane == "y"


async def test_debounce_puts_off_the_expiry_as_well(engine: Engine, clock: Clock) -> None:
    first = await made(engine, with_key(DEBOUNCE, delay=30, expires_in=60))
    clock.advance(50)
    await put(engine, with_key(DEBOUNCE, delay=30, expires_in=60))
    clock.advance(20)
    assert (await engine.expire(10)).ids == ()
    clock.advance(41)
    assert (await engine.expire(10)).ids == (first,)
    second = await made(engine, with_key(DEBOUNCE, delay=30, expires_in=60))
    # A call without expiry takes it away.
    await put(engine, with_key(DEBOUNCE, delay=30))
    clock.advance(100)
    assert (await engine.expire(10)).ids == ()
    assert await status(engine, second) is Status.SCHEDULED


# Lanes that are full


async def test_a_free_place_is_taken_whatever_the_policy(engine: Engine) -> None:
    for lane, when_full in (("a", "refuse"), ("b", "replace"), ("c", "cancel_running")):
        await made(engine, in_lane(when_full, lane=lane))
    worker = await a_worker(engine)
    assert len(await claim(engine, worker, 5)) == 3


async def test_refuse_stores_nothing_where_it_would_have_to_wait(engine: Engine) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="x")
    refused = in_lane("refuse", key="k")
    answer = await put(engine, refused)
    assert answer.inserted is None
    assert await engine.get([refused.id]) == []
    # Its key is not taken.
    [found] = await engine.insert([a_job(key="k", queue="other")])
    assert found.created
    [running] = await claim(engine, worker, 5, queues=["default"])
    assert (await put(engine, in_lane("refuse"))).inserted is None
    await complete(engine, running)
    await made(engine, in_lane("refuse"))


async def test_refuse_counts_by_the_width_of_the_new_job(engine: Engine) -> None:
    await enqueue(engine, lane="x", width=1)
    await made(engine, in_lane("refuse", width=3))
    await made(engine, in_lane("refuse", width=3))
    assert (await put(engine, in_lane("refuse", width=3))).inserted is None


async def test_refuse_does_not_pass_those_that_wait(engine: Engine) -> None:
    """A job of higher priority would be next, but it would have to wait all the same."""
    worker = await a_worker(engine)
    await enqueue(engine, lane="x")
    await claim(engine, worker)
    await enqueue(engine, lane="x")
    assert (await put(engine, in_lane("refuse", priority=9))).inserted is None


async def test_refuse_puts_nobody_back(engine: Engine) -> None:
    """A plain job of higher priority would take the place of one that is ready."""
    ready = await enqueue(engine, lane="x")
    assert (await put(engine, in_lane("refuse", priority=9))).inserted is None
    assert (await the_job(engine, ready)).state is State.READY


async def test_replace_takes_the_place_of_all_that_wait(engine: Engine) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="x")
    [running] = await claim(engine, worker)
    waiting = [await enqueue(engine, lane="x") for _ in range(5)]
    elsewhere = await enqueue(engine, lane="x", queue="other")
    newest = in_lane("replace")
    answer = await put(engine, newest)
    assert (set(answer.cancelled), answer.stopping) == (set(waiting), ())
    for job_id in waiting:
        job = await the_job(engine, job_id)
        assert (job.status, job.error) == (Status.CANCELLED, replaced_by(newest.id))
    assert await status(engine, elsewhere) is Status.PENDING
    assert await complete(engine, running)
    claimed = await claim(engine, worker, 5, queues=["default"])
    assert [job.id for job in claimed] == [newest.id]


async def test_replace_lets_nobody_in_before_it_counts(engine: Engine) -> None:
    """One of those that wait would get a place by the width of the new job: it goes as well."""
    worker = await a_worker(engine)
    await enqueue(engine, lane="x", width=1)
    await claim(engine, worker)
    waiting = [await enqueue(engine, lane="x", width=1) for _ in range(2)]
    newest = in_lane("replace", width=2)
    answer = await put(engine, newest)
    assert (set(answer.cancelled), answer.stopping) == (set(waiting), ())
    assert (await the_job(engine, newest.id)).state is State.READY


async def test_a_lane_that_becomes_wide_enough_for_all_is_not_full(engine: Engine) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="x", width=1)
    await claim(engine, worker)
    waiting = await enqueue(engine, lane="x", width=1)
    newest = in_lane("replace", width=3)
    answer = await put(engine, newest)
    assert (answer.cancelled, answer.stopping) == ((), ())
    for job_id in (waiting, newest.id):
        assert (await the_job(engine, job_id)).state is State.READY


async def test_cancel_running_stops_all_others_of_the_lane(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="x", width=2)
    [running] = await claim(engine, worker)
    ready = await enqueue(engine, lane="x", width=2)
    waiting = await enqueue(engine, lane="x", width=2)
    newest = in_lane("cancel_running", width=2)
    answer = await put(engine, newest)
    assert set(answer.cancelled) == {ready, waiting}
    assert answer.stopping == (first,)
    job = await the_job(engine, first)
    assert (job.status, job.cancel_requested) == (Status.RUNNING, True)
    claimed = await claim(engine, worker, 5)
    assert [job.id for job in claimed] == [newest.id]
    # Whatever the attempt says, it is cancelled, for the reason of the request.
    await retry(engine, running)
    job = await the_job(engine, first)
    assert (job.status, job.error) == (Status.CANCELLED, replaced_by(newest.id))


async def test_cancel_running_ends_a_retry_that_holds_its_place(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="x", hold=True)
    [running] = await claim(engine, worker)
    await retry(engine, running, 100)
    newest = in_lane("cancel_running")
    answer = await put(engine, newest)
    assert answer.cancelled == (first,)
    assert [job.id for job in await claim(engine, worker, 5)] == [newest.id]


async def test_jobs_that_are_not_due_are_no_part_of_it(engine: Engine) -> None:
    later = await enqueue(engine, lane="x", delay=100)
    await enqueue(engine, lane="x")
    answer = await put(engine, in_lane("cancel_running"))
    assert later not in answer.cancelled
    assert (await the_job(engine, later)).state is State.SCHEDULED


# Several at once


@pytest.mark.parametrize("policy", [REPLACE, DEBOUNCE])
async def test_fifty_callers_at_once_leave_one_job(
    engine: Engine, open_another: Opener, policy: InsertPolicy
) -> None:
    engines = [engine, await open_another(), await open_another()]
    jobs = [with_key(policy, args=b'{"n":%d}' % n, delay=60) for n in range(50)]
    answers = await asyncio.gather(
        *(engines[n % 3].insert_by_policy(job) for n, job in enumerate(jobs))
    )
    assert all(answer.inserted is not None for answer in answers)
    left = [job for job in await engine.get([job.id for job in jobs]) if not job.status.final]
    assert len(left) == 1
    cancelled = [job_id for answer in answers for job_id in answer.cancelled]
    created = [answer.inserted.id for answer in answers if answer.inserted.created]  # type: ignore[union-attr]
    assert sorted([*cancelled, left[0].id]) == sorted(created)
    [found] = await engine.insert([a_job(key="k")])
    assert found.id == left[0].id


@pytest.mark.parametrize("when_full", ["refuse", "replace", "cancel_running"])
async def test_fifty_callers_at_once_into_one_lane(
    engine: Engine, open_another: Opener, when_full: str
) -> None:
    engines = [engine, await open_another(), await open_another()]
    jobs = [in_lane(when_full) for _ in range(50)]
    answers = await asyncio.gather(
        *(engines[n % 3].insert_by_policy(job) for n, job in enumerate(jobs))
    )
    stored = [answer.inserted.id for answer in answers if answer.inserted is not None]
    left = [job.id for job in await engine.get(stored) if not job.status.final]
    cancelled = [job_id for answer in answers for job_id in answer.cancelled]
    assert sorted([*cancelled, *left]) == sorted(stored)
    # One has the place; "replace" leaves one more, which waits.
    assert len(left) == (2 if when_full == "replace" else 1)


async def test_windows_at_once_make_one_job(engine: Engine, open_another: Opener) -> None:
    engines = [engine, await open_another(), await open_another()]
    jobs = [with_key(InsertPolicy(window=60)) for _ in range(30)]
    answers = await asyncio.gather(
        *(engines[n % 3].insert_by_policy(job) for n, job in enumerate(jobs))
    )
    ids = {answer.inserted.id for answer in answers if answer.inserted is not None}
    assert len(ids) == 1
    assert sum(answer.inserted.created for answer in answers if answer.inserted) == 1


async def test_policies_and_claims_at_once(engine: Engine, open_another: Opener) -> None:
    """Each job is either replaced or run, and the lane is never held by two."""
    other = await open_another()
    worker = await a_worker(other)
    ran: list[str] = []
    stored: list[str] = []
    cancelled: list[str] = []

    async def insert() -> None:
        for n in range(80):
            job = with_key(REPLACE, lane="x") if n % 2 else in_lane("replace")
            answer = await put(engine, job)
            assert answer.inserted is not None
            stored.append(answer.inserted.id)
            cancelled.extend(answer.cancelled)

    async def run() -> None:
        for _ in range(80):
            jobs = await claim(other, worker, 5)
            assert len(jobs) <= 1
            for job in jobs:
                assert await complete(other, job)
                ran.append(job.id)

    await asyncio.gather(insert(), run())
    while jobs := await claim(other, worker, 5):
        assert len(jobs) == 1
        await complete(other, jobs[0])
        ran.append(jobs[0].id)
    assert sorted([*ran, *cancelled]) == sorted(stored)
