"""Taking jobs in: durable, in order, once per key."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import Inserted
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, fail, status, the_job


async def test_an_inserted_job_is_there_for_another_process(
    engine: Engine, open_another: Opener
) -> None:
    job_id = await enqueue(engine, task="greet", args=b'{"name":"\xeb\xac\xbc"}', queue="mail")
    other = await open_another()
    job = await the_job(other, job_id)
    assert (job.task, job.queue, job.args) == ("greet", "mail", {"name": "물"})
    assert job.status is Status.PENDING
    assert (job.attempt, job.token, job.progress) == (0, 0, 0.0)


async def test_every_field_comes_back_as_it_was_given(engine: Engine) -> None:
    job_id = await enqueue(
        engine,
        task="t.x",
        queue="q-1",
        priority=-7,
        key="once ✓",
        lane="user:é",
        width=3,
        hold=False,
        max_attempts=9,
        timeout=12.5,
        on_crash="fail",
        source="api",
        meta=b'{"user":"ada"}',
    )
    job = await the_job(engine, job_id)
    assert (job.priority, job.key, job.lane, job.width, job.hold) == (
        -7,
        "once ✓",
        "user:é",
        3,
        False,
    )
    assert (job.max_attempts, job.timeout, job.on_crash) == (9, 12.5, "fail")
    assert (job.source, job.meta) == ("api", {"user": "ada"})


async def test_no_timeout_stays_none(engine: Engine) -> None:
    job_id = await enqueue(engine, timeout=None)
    assert (await the_job(engine, job_id)).timeout is None
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    assert job.timeout is None


async def test_inserting_nothing_is_fine(engine: Engine) -> None:
    assert await engine.insert([]) == []


async def test_answers_come_in_the_order_of_the_call(engine: Engine) -> None:
    jobs = [a_job() for _ in range(300)]
    answers = await engine.insert(jobs)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert all(answer.created for answer in answers)


async def test_jobs_run_in_the_order_of_arrival(engine: Engine) -> None:
    first = [a_job() for _ in range(50)]
    # Ids that sort the other way round: arrival counts, not the id.
    second = sorted((a_job() for _ in range(50)), key=lambda job: job.id, reverse=True)
    await engine.insert(first)
    await engine.insert(second)
    worker = await a_worker(engine)
    claimed = await claim(engine, worker, 100)
    assert [job.id for job in claimed] == [job.id for job in [*first, *second]]


@pytest.mark.parametrize("where", ["pending", "scheduled", "running", "finished"])
async def test_a_job_whose_id_exists_is_not_stored_again(engine: Engine, where: str) -> None:
    worker = await a_worker(engine)
    new = a_job(lane="l", delay=60 if where == "scheduled" else 0)
    assert await engine.insert([new]) == [Inserted(new.id, True)]
    if where in ("running", "finished"):
        [job] = await claim(engine, worker)
        if where == "finished":
            await complete(engine, job)
    before = await the_job(engine, new.id)
    fresh = a_job()
    assert await engine.insert([new, fresh]) == [Inserted(new.id, False), Inserted(fresh.id, True)]
    assert await the_job(engine, new.id) == before
    assert len(await engine.get([new.id, fresh.id])) == 2


async def test_an_id_twice_in_one_call_makes_one_job(engine: Engine) -> None:
    new = a_job(key="k")
    other = msgspec.structs.replace(new, key=None, priority=5)
    answers = await engine.insert([new, other, new])
    assert answers == [Inserted(new.id, True), Inserted(new.id, False), Inserted(new.id, False)]
    assert (await the_job(engine, new.id)).priority == 0


async def test_of_one_id_in_a_call_the_first_counts_even_if_its_key_was_taken(
    engine: Engine,
) -> None:
    owner = await enqueue(engine, key="k")
    new = a_job(key="k")
    again = msgspec.structs.replace(new, key=None)
    assert await engine.insert([new, again]) == [Inserted(owner, False)] * 2
    assert await engine.get([new.id]) == []
    assert await engine.insert([again]) == [Inserted(new.id, True)]


async def test_a_repeated_insert_changes_nothing(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    new = a_job(lane="l", width=1)
    await engine.insert([new, a_job(lane="l", width=1)])
    repeated = msgspec.structs.replace(new, key="another", width=3)
    assert await engine.insert([repeated]) == [Inserted(new.id, False)]
    [lane] = await engine.lanes()
    assert (lane.width, lane.used, lane.waiting) == (1, 1, 1)
    # The key was not taken either.
    [fresh] = await engine.insert([a_job(key="another")])
    assert fresh.created
    for job in [*await claim(engine, worker, 5), *await claim(engine, worker, 5)]:
        await complete(engine, job)
    clock.advance(10)
    await engine.prune(older_than=1)


async def test_an_id_that_finishes_while_its_insert_is_repeated_stays_one_job(
    engine: Engine, open_another: Opener
) -> None:
    other = await open_another()
    worker = await a_worker(engine)
    for _ in range(20):
        new = a_job()
        await engine.insert([new])
        [job] = await claim(engine, worker)
        _, *answers = await asyncio.gather(
            complete(engine, job), other.insert([new]), other.insert([new])
        )
        assert answers == [[Inserted(new.id, False)]] * 2
        assert await status(engine, new.id) is Status.COMPLETED
    assert await claim(engine, worker) == []


async def test_a_key_returns_the_job_that_exists(engine: Engine) -> None:
    first = await enqueue(engine, key="daily")
    [again] = await engine.insert([a_job(key="daily")])
    assert (again.id, again.created) == (first, False)


async def test_a_key_belongs_to_its_task(engine: Engine) -> None:
    first = await enqueue(engine, task="one", key="k")
    [other] = await engine.insert([a_job(task="two", key="k")])
    assert other.created
    assert other.id != first


async def test_a_key_twice_in_one_call_makes_one_job(engine: Engine) -> None:
    jobs = [a_job(key="k"), a_job(), a_job(key="k")]
    answers = await engine.insert(jobs)
    assert [answer.id for answer in answers] == [jobs[0].id, jobs[1].id, jobs[0].id]
    assert [answer.created for answer in answers] == [True, True, False]


async def test_a_key_outlives_its_job_until_it_is_pruned(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, key="k")
    [job] = await claim(engine, worker)
    await fail(engine, job)
    [again] = await engine.insert([a_job(key="k")])
    assert (again.id, again.created) == (first, False)
    clock.advance(100)
    assert await engine.prune(older_than=50) == 1
    [fresh] = await engine.insert([a_job(key="k")])
    assert fresh.created


async def test_a_key_raced_by_many_makes_one_job(engine: Engine, open_another: Opener) -> None:
    engines = [engine, await open_another(), await open_another()]
    answers = await asyncio.gather(
        *(engines[n % 3].insert([a_job(key=f"k{n % 5}", lane="l")]) for n in range(60))
    )
    created = [answer.id for [answer] in answers if answer.created]
    assert len(created) == 5
    assert {answer.id for [answer] in answers} == set(created)


async def test_a_delayed_job_is_scheduled_until_its_time(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, delay=60)
    assert await status(engine, job_id) is Status.SCHEDULED
    assert await claim(engine, worker) == []
    assert (await engine.promote_due(10)).moved == 0
    clock.advance(59)
    assert (await engine.promote_due(10)).moved == 0
    clock.advance(2)
    assert (await engine.promote_due(10)).moved == 1
    assert await status(engine, job_id) is Status.PENDING
    [job] = await claim(engine, worker)
    assert job.id == job_id


async def test_run_at_is_an_absolute_time(engine: Engine, clock: Clock) -> None:
    later = await enqueue(engine, run_at=clock.now() + 3600)
    past = await enqueue(engine, run_at=clock.now() - 3600)
    assert await status(engine, later) is Status.SCHEDULED
    assert await status(engine, past) is Status.PENDING
    due = await engine.promote_due(10)
    assert due.next_in is not None
    assert 3500 < due.next_in <= 3601
    assert abs((await the_job(engine, later)).run_at.timestamp() - clock.now() - 3600) < 5


async def test_times_are_kept_to_the_millisecond(engine: Engine, clock: Clock) -> None:
    run_at = round(clock.now()) + 3600.125
    before = clock.now()
    job = await the_job(engine, await enqueue(engine, run_at=run_at))
    assert abs(job.run_at.timestamp() - run_at) < 0.001
    after = clock.now()
    assert before - 0.5 < job.created_at.timestamp() < after + 0.5
    created = [(await the_job(engine, await enqueue(engine))).created_at for _ in range(5)]
    assert created == sorted(created)
    assert any(moment.microsecond % 1_000_000 for moment in created)


async def test_large_and_odd_payloads_survive(engine: Engine) -> None:
    worker = await a_worker(engine)
    body = b'{"text":"' + "물레방아 \\u0000 🎡".encode() * 20_000 + b'"}'
    job_id = await enqueue(engine, args=body)
    [job] = await claim(engine, worker)
    assert bytes(job.args) == body
    assert await complete(engine, job, body)
    stored = await the_job(engine, job_id)
    assert (stored.args_json, stored.result_json) == (body, body)


async def test_five_thousand_jobs_in_one_call(engine: Engine) -> None:
    jobs = [a_job(lane=f"l{n % 50}" if n % 2 else None) for n in range(5_000)]
    assert len(await engine.insert(jobs)) == 5_000
    [queue] = await engine.queues()
    assert queue.ready + queue.waiting == 5_000
    assert queue.ready == 2_500 + 25


@pytest.mark.parametrize("count", [15, 16, 17, 50])
async def test_each_job_of_a_call_keeps_its_own_values(engine: Engine, count: int) -> None:
    jobs = [
        a_job(
            task=f"t{n}",
            args=b"[%d]" % n,
            lane=f"l{n}" if n % 3 else None,
            key=f"k{n}" if n % 2 else None,
            meta=b'{"n":%d}' % n if n % 5 else None,
            delay=60.0 * (n % 4 == 0),
        )
        for n in range(count)
    ]
    await engine.insert(jobs)
    stored = await engine.get([job.id for job in jobs])
    for n, (asked, job) in enumerate(zip(jobs, stored, strict=True)):
        assert (job.id, job.task, job.args_json) == (asked.id, f"t{n}", asked.args)
        assert (job.lane, job.key) == (asked.lane, asked.key)
        assert job.meta == ({"n": n} if n % 5 else {})
        assert job.status is (Status.SCHEDULED if n % 4 == 0 else Status.PENDING)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("finished", [2, 3])
async def test_a_repeated_call_leaves_jobs_alone_that_have_finished_since(
    engine: Engine, keyed: bool, finished: int
) -> None:
    jobs = [a_job(key=f"k{n}" if keyed else None) for n in range(3)]
    await engine.insert(jobs)
    worker = await a_worker(engine)
    for job in await claim(engine, worker, limit=finished):
        assert await complete(engine, job)
    again = await engine.insert(jobs)
    assert [(each.id, each.created) for each in again] == [(job.id, False) for job in jobs]
    left = await claim(engine, worker, limit=9)
    assert [job.id for job in left] == [job.id for job in jobs[finished:]]
