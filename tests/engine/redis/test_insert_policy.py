"""Inserts by policy in Redis: bounded steps, bodies that are changed in place, keys that move."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.redis import scripts
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.insert_policy import InsertPolicy, replaced_by
from headrace.model.job import JobFilter, NewJob
from headrace.model.status import State, Status
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, status, the_job

REPLACE = InsertPolicy(on_duplicate="replace")
DEBOUNCE = InsertPolicy(on_duplicate="debounce")
# What one step of a replacement cancels.
AT_ONCE = 2_000


def with_key(policy: InsertPolicy, **fields: object) -> NewJob:
    return a_job(**{"key": "k", "policy": policy, **fields})


@pytest.mark.parametrize("when_full", ["replace", "cancel_running"])
async def test_very_many_that_wait_are_replaced_in_bounded_steps(
    redis_engine: RedisEngine, admin: RedisConnection, when_full: str
) -> None:
    worker = await a_worker(redis_engine)
    waiting = [a_job(lane="x") for _ in range(2 * AT_ONCE + 100)]
    first = await enqueue(redis_engine, lane="x")
    [running] = await claim(redis_engine, worker)
    await redis_engine.insert(waiting)
    policy = InsertPolicy(when_full=when_full)  # type: ignore[arg-type]
    newest = a_job(lane="x", policy=policy)
    cancelled: set[str] = set()

    async def insert() -> None:
        answer = await redis_engine.insert_by_policy(newest)
        assert answer.inserted is not None
        assert answer.inserted.created
        assert answer.stopping == ((first,) if when_full == "cancel_running" else ())
        cancelled.update(answer.cancelled)

    sha = scripts.script("insert_by_policy").sha
    steps: list[int] = []
    stored_in = 0
    for by_script, words in await commands_of(redis_engine, insert()):
        if words[0] == "EVALSHA" and words[1] == sha:
            steps.append(0)
        elif by_script and words[0] == "ZREM" and words[1] == redis_engine.key("waiting"):
            steps[-1] += len(words) - 2
        elif by_script and words[0] == "HSET" and words[1] == redis_engine.key("bodies"):
            stored_in = len(steps)
    # A call that found its script unknown did nothing.
    assert [each for each in steps if each] == [AT_ONCE, AT_ONCE, 100]
    # The new one comes with the last of those that wait.
    assert stored_in == len(steps)
    assert cancelled == {job.id for job in waiting}
    assert (await the_job(redis_engine, waiting[-1].id)).error == replaced_by(newest.id)
    assert await redis_engine.audit() == []
    await complete(redis_engine, running)
    assert [job.id for job in await claim(redis_engine, worker, 5)] == [newest.id]


async def test_what_is_next_in_line_goes_last(redis_engine: RedisEngine) -> None:
    """Between two steps a place may become free: who gets it then is not among the cancelled."""
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine, lane="x")
    [running] = await claim(redis_engine, worker)
    waiting = [a_job(lane="x") for _ in range(AT_ONCE + 1)]
    await redis_engine.insert(waiting)
    newest = a_job(lane="x", policy=InsertPolicy(when_full="replace"))
    run = redis_engine.run
    taken: list[str] = []

    async def between(verb: str, *arguments: object) -> object:
        answer = await run(verb, *arguments)  # type: ignore[arg-type]
        if verb == "insert_by_policy" and answer[0] == b"+":
            await complete(redis_engine, running)
            taken.extend(job.id for job in await claim(redis_engine, worker))
        return answer

    redis_engine.run = between  # type: ignore[method-assign]
    answer = await redis_engine.insert_by_policy(newest)
    assert taken == [waiting[0].id]
    assert set(answer.cancelled) == {job.id for job in waiting[1:]}


async def test_a_place_that_a_wider_lane_gets_is_for_those_that_wait(
    redis_engine: RedisEngine,
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine, lane="x")
    await claim(redis_engine, worker)
    await enqueue(redis_engine, lane="x")
    refuse = InsertPolicy(when_full="refuse")
    for width, stored in ((2, False), (3, True)):
        answer = await redis_engine.insert_by_policy(a_job(lane="x", width=width, policy=refuse))
        assert (answer.inserted is not None) is stored
    assert len(await claim(redis_engine, worker, 5)) == 2


@pytest.mark.parametrize("old", [2, 300, 70_000])
@pytest.mark.parametrize("new", [2, 300, 70_000])
async def test_debounce_changes_arguments_and_meta_alone(
    redis_engine: RedisEngine, old: int, new: int
) -> None:
    def args(size: int) -> bytes:
        return b'{"a":"%s"}' % (b"x" * size)

    fields = {"max_attempts": 7, "timeout": 12.5, "on_crash": "fail", "delay": 60}
    first = with_key(DEBOUNCE, args=args(old), meta=b'{"m":1}', **fields)
    await redis_engine.insert_by_policy(first)
    again = with_key(DEBOUNCE, args=args(new), delay=30, max_attempts=1, priority=9)
    answer = await redis_engine.insert_by_policy(again)
    assert answer.inserted is not None
    assert answer.inserted.id == first.id
    job = await the_job(redis_engine, first.id)
    assert job.args_json == args(new)
    assert (job.meta_json, job.max_attempts, job.timeout, job.on_crash) == (None, 7, 12.5, "fail")
    assert job.priority == 0
    [brief] = (await redis_engine.list_jobs(JobFilter(), brief=True)).jobs
    assert brief.max_attempts == 7


async def test_a_debounced_job_that_is_due_by_the_last_call_is_ready_at_once(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine, lane="x")
    [running] = await claim(redis_engine, worker)
    await redis_engine.insert_by_policy(with_key(DEBOUNCE, lane="x", delay=60))
    answer = await redis_engine.insert_by_policy(with_key(DEBOUNCE, lane="x"))
    assert answer.inserted is not None
    assert (await the_job(redis_engine, answer.inserted.id)).state is State.WAITING
    await complete(redis_engine, running)
    [job] = await claim(redis_engine, worker)
    assert job.id == answer.inserted.id


async def test_one_whose_time_has_come_is_not_put_off_before_anybody_moved_it(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    await redis_engine.insert_by_policy(with_key(DEBOUNCE, delay=30))
    clock.advance(31)
    await redis_engine.insert_by_policy(with_key(DEBOUNCE, delay=30))
    assert (await redis_engine.promote_due(10)).moved == 1


async def test_a_key_finds_the_job_that_has_it(redis_engine: RedisEngine, clock: Clock) -> None:
    await redis_engine.insert_by_policy(with_key(REPLACE))
    newest = with_key(REPLACE)
    await redis_engine.insert_by_policy(newest)
    other = with_key(REPLACE, task="other")
    await redis_engine.insert_by_policy(other)
    for tasks, expected in (((), {newest.id, other.id}), (("work",), {newest.id})):
        wanted = JobFilter(key="k", tasks=tasks)
        assert {job.id for job in (await redis_engine.list_jobs(wanted)).jobs} == expected
        assert (await redis_engine.count_jobs(wanted)).count == len(expected)


async def test_a_replaced_job_with_a_parent_is_no_longer_waited_for(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    parent = await enqueue(redis_engine, queue="parents")
    await redis_engine.insert_by_policy(with_key(REPLACE, parent=parent, group="g"))
    newest = with_key(REPLACE, parent=parent, group="g")
    answer = await redis_engine.insert_by_policy(newest)
    assert len(answer.cancelled) == 1
    left = await admin.call("ZRANGE", redis_engine.key("unfinished"), 0, -1)
    assert left == [f"{parent}\0g\0{newest.id}".encode()]
    assert len((await redis_engine.list_jobs(JobFilter(parent=parent))).jobs) == 2


async def test_both_jobs_of_a_key_can_be_pruned_together(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    worker = await a_worker(redis_engine)
    first, second = with_key(REPLACE), with_key(REPLACE)
    await redis_engine.insert_by_policy(first)
    await redis_engine.insert_by_policy(second)
    [job] = await claim(redis_engine, worker)
    await complete(redis_engine, job)
    assert await status(redis_engine, first.id) is Status.CANCELLED
    assert await redis_engine.prune(keep=0) == 2
    # One field is there so that the hash is a table; see migrate.lua.
    assert await admin.call("HLEN", redis_engine.key("task_keys")) == 1
