"""Lanes as people see them: the longest line first, everybody who has a place, and how old."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.base import Engine
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, retry


async def test_the_most_waiting_come_first_then_by_queue_and_name(engine: Engine) -> None:
    sizes = {
        ("b", "x"): 2,
        ("a", "y"): 2,
        ("a", "x"): 2,
        ("a", "é"): 2,
        ("a", "Z"): 2,
        ("c", "long"): 4,
        ("a", "alone"): 1,
    }
    await engine.insert(
        [
            a_job(queue=queue, lane=lane)
            for (queue, lane), size in sizes.items()
            for _ in range(size)
        ]
    )
    expected = [
        ("c", "long", 3),
        ("a", "Z", 1),
        ("a", "x", 1),
        ("a", "y", 1),
        ("a", "é", 1),
        ("b", "x", 1),
        ("a", "alone", 0),
    ]
    seen = [(lane.queue, lane.lane, lane.waiting) for lane in await engine.lanes()]
    assert seen == expected
    for limit in (1, 3, 6):
        some = [(lane.queue, lane.lane, lane.waiting) for lane in await engine.lanes(limit=limit)]
        assert some == expected[:limit]
    of_a = [lane.lane for lane in await engine.lanes(queue="a", limit=2)]
    assert of_a == ["Z", "x"]
    assert [lane.queue for lane in await engine.lanes(lane="x", limit=5)] == ["a", "b"]
    assert await engine.lanes(queue="c", lane="x") == []


async def test_holders_are_ready_running_or_keep_their_place(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine, lane="l", width=4, hold=True) for _ in range(3)]
    one, two = await claim(engine, worker, 2)
    await retry(engine, one, 600)
    urgent = await enqueue(engine, lane="l", width=4, priority=5)
    waiting = await enqueue(engine, lane="l", width=4)
    [lane] = await engine.lanes()
    # By priority, then arrival.
    assert lane.holders == (urgent, *ids)
    assert (lane.used, lane.waiting) == (4, 1)
    await complete(engine, two)
    [lane] = await engine.lanes()
    assert lane.holders == (urgent, ids[0], ids[2], waiting)
    assert (lane.used, lane.waiting, lane.oldest_age) == (4, 0, None)


async def test_a_delayed_job_does_not_make_a_lane(engine: Engine) -> None:
    await enqueue(engine, lane="l", delay=60)
    assert await engine.lanes() == []


async def test_a_lane_that_only_keeps_a_place_is_seen(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, lane="l", hold=True)
    [job] = await claim(engine, worker)
    await retry(engine, job, 600)
    [lane] = await engine.lanes()
    assert (lane.holders, lane.used, lane.waiting) == ((job_id,), 1, 0)


async def test_all_holders_of_a_wide_lane_are_named(engine: Engine) -> None:
    new = [a_job(lane="l", width=1_500) for _ in range(1_500)]
    await engine.insert(new)
    [lane] = await engine.lanes()
    assert lane.holders == tuple(job.id for job in new)


async def test_the_age_is_of_the_oldest_that_waits(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="l")
    [job] = await claim(engine, worker)
    clock.advance(100)
    await enqueue(engine, lane="l")
    clock.advance(10)
    await enqueue(engine, lane="l", priority=5)
    clock.advance(10)
    [lane] = await engine.lanes()
    assert lane.oldest_age is not None
    assert 19 < lane.oldest_age < 60
    await complete(engine, job)
    [lane] = await engine.lanes(queue="default", lane="l")
    assert (lane.used, lane.waiting) == (1, 1)
    assert lane.oldest_age is not None
    assert 19 < lane.oldest_age < 60
