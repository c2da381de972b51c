"""Children and suspended jobs in Redis: their indexes, their cost, and that others do not pay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.clock import Clock
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent
from headrace.model.outcome import Released, Snoozed
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import (
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    fail,
    retry,
    settle,
)

FAMILY = ("children", "unfinished", "suspended", "awaits")
A_DAY = 86_400.0


async def a_parent(engine: RedisEngine, worker: str, *awaits: Awaited) -> str:
    parent = await enqueue(engine, queue="parents")
    [job] = await claim(engine, worker, queues=["parents"])
    assert job.id == parent
    assert await settle(engine, job, Snoozed(A_DAY, awaits))
    return parent


async def a_life_alone(engine: RedisEngine, worker: str) -> None:
    """Everything on the hot path, for jobs without a parent that await nothing."""
    await engine.insert([a_job(), *(a_job(lane="l", width=5) for _ in range(4))])
    one, two, three = await claim(engine, worker, 3, None)
    await complete(engine, one)
    await retry(engine, two, 0)
    await settle(engine, three, Snoozed(A_DAY))
    four, five = await claim(engine, worker, 2)
    await settle(engine, four, Released())
    await fail(engine, five)


async def test_jobs_without_a_family_never_reach_for_one(redis_engine: RedisEngine) -> None:
    worker = await a_worker(redis_engine)
    await a_life_alone(redis_engine, worker)
    keys = {redis_engine.key(name) for name in (*FAMILY, "records", "record_index")}
    told = await commands_of(redis_engine, a_life_alone(redis_engine, worker))
    by_scripts = [words for by_script, words in told if by_script]
    assert len(by_scripts) > 20
    assert [words for words in by_scripts if words[1:2] and words[1] in keys] == []


async def test_waking_costs_the_same_for_any_number_of_children(
    redis_engine: RedisEngine,
) -> None:
    worker = await a_worker(redis_engine)
    parent = await a_parent(redis_engine, worker, AwaitedChildren("g", 1), AwaitedChildren(None, 1))
    costs: list[int] = []

    async def wake() -> None:
        assert await redis_engine.wake([parent]) == []

    await redis_engine.insert([a_job(parent=parent, group="g") for _ in range(2)])
    await wake()
    for number in (2, 3_000):
        await redis_engine.insert([a_job(parent=parent, group="g") for _ in range(number)])
        costs.append(len(await commands_of(redis_engine, wake())))
    assert costs[0] == costs[1]


async def test_groups_with_similar_names_are_counted_apart(redis_engine: RedisEngine) -> None:
    worker = await a_worker(redis_engine)
    groups = ["a", "ab", "a b", "a\u00e9", "A", None]
    for group in groups[:-1]:
        parent = await a_parent(redis_engine, worker, AwaitedChildren(group))
        others = [each for each in groups if each != group]
        made = await redis_engine.insert([a_job(parent=parent, group=each) for each in groups])
        await redis_engine.cancel([made[groups.index(each)].id for each in others])
        assert await redis_engine.wake([parent]) == [], group
        await redis_engine.cancel([made[groups.index(group)].id])
        assert await redis_engine.wake([parent]) == [parent], group
        [job] = await claim(redis_engine, worker)
        await complete(redis_engine, job)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", 'a"b\\', "a\nb"])
async def test_odd_events_are_awaited_by_the_name_they_are_kept_under(
    redis_engine: RedisEngine, name: str
) -> None:
    worker = await a_worker(redis_engine)
    parent = await a_parent(redis_engine, worker, AwaitedEvent(name))
    assert await redis_engine.signal(parent, name, b"1") == "delivered"
    assert await redis_engine.signal(parent, name, b"1") == "already"
    assert await redis_engine.wake([parent]) == [parent]


async def test_spared_children_do_not_hide_what_can_be_pruned(redis_engine: RedisEngine) -> None:
    """More of them than a step looks at are older than the jobs that may go."""
    worker = await a_worker(redis_engine)
    parent = await a_parent(redis_engine, worker, AwaitedEvent("approved"))
    made = await redis_engine.insert([a_job(parent=parent) for _ in range(2_100)])
    await redis_engine.cancel([each.id for each in made])
    alone = [await enqueue(redis_engine) for _ in range(3)]
    await redis_engine.cancel(alone)
    assert await redis_engine.prune(keep=0, limit=2) == 2
    assert await redis_engine.prune(keep=0, limit=2) == 1
    assert await redis_engine.prune(keep=0, limit=2) == 0
    assert await redis_engine.get(alone) == []
    await redis_engine.cancel([parent])
    removed = 0
    while step := await redis_engine.prune(keep=0):
        removed += step
    assert removed == 2_101


async def test_a_pruned_family_leaves_nothing_behind(
    redis_engine: RedisEngine, admin: RedisConnection, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    parent = await a_parent(redis_engine, worker, AwaitedChildren(), AwaitedEvent("approved"))
    await redis_engine.insert([a_job(parent=parent, group=each) for each in ("a", "a", None)])
    await redis_engine.signal(parent, "approved", b"1")
    await redis_engine.wake([parent])
    for job in await claim(redis_engine, worker, 4):
        await complete(redis_engine, job)
    clock.advance(10)
    assert await redis_engine.prune(older_than=1) == 4
    for name in FAMILY:
        assert await admin.call("EXISTS", redis_engine.key(name)) == 0
    assert await admin.call("HLEN", redis_engine.key("entries")) == 1


Damage = Callable[[RedisEngine, str, str], tuple[str | int, ...]]
DAMAGES: dict[str, Damage] = {
    "does not count": lambda e, p, c: ("ZREM", e.key("unfinished"), f"{p}\0g\0{c}"),
    "counted too much": lambda e, p, c: ("ZADD", e.key("unfinished"), 0, f"{p}\0g\0{p}"),
    "is not listed": lambda e, p, c: ("ZREM", e.key("children"), f"{p}\0{c}"),
    "wrong parent": lambda e, p, c: ("ZADD", e.key("children"), 0, f"{c}\0{p}"),
    "does not exist": lambda e, p, c: ("ZADD", e.key("children"), 0, f"{p}\0nobody"),
    "what for": lambda e, p, c: ("HDEL", e.key("awaits"), p),
    "not suspended": lambda e, p, c: ("ZADD", e.key("suspended"), 0, c),
}


@pytest.mark.parametrize("words", DAMAGES)
async def test_the_audit_sees_an_index_that_disagrees(
    engine_url: str, clock: Clock, words: str
) -> None:
    engine = RedisEngine(engine_url, clock=clock)
    await engine.open()
    worker = await a_worker(engine)
    parent = await a_parent(engine, worker, AwaitedChildren())
    child = await enqueue(engine, parent=parent, group="g")
    assert await engine.audit() == []
    await engine._link.call(*DAMAGES[words](engine, parent, child))
    assert words in " ".join(finding.detail for finding in await engine.audit())
    await engine.close()
