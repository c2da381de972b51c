"""Lanes: never more than `width` holders; by priority, then arrival; nothing gets stuck."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Released
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import (
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    fail,
    retry,
    settle,
    status,
    the_job,
)


async def test_a_lane_runs_one_job_at_a_time_in_order(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine, lane="a") for _ in range(4)]
    for expected in ids:
        [job] = await claim(engine, worker, 10)
        assert job.id == expected
        assert await claim(engine, worker, 10) == []
        assert await complete(engine, job)


@pytest.mark.parametrize("width", [1, 2, 3, 7])
async def test_a_lane_never_exceeds_its_width(engine: Engine, width: int) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane="a", width=width) for _ in range(20)])
    running = await claim(engine, worker, 20)
    assert len(running) == width
    finished = 0
    while running:
        assert await complete(engine, running.pop(0))
        finished += 1
        running += await claim(engine, worker, 20)
        assert len(running) == min(width, 20 - finished)
    assert finished == 20


async def test_the_next_of_a_lane_is_claimed_in_the_same_trip(engine: Engine) -> None:
    from headrace.model.outcome import Completed, Settlement

    worker = await a_worker(engine)
    await engine.insert([a_job(lane="a") for _ in range(3)])
    [job] = await claim(engine, worker, 10)
    for _ in range(2):
        answer = await engine.exchange(
            [Settlement(job.id, job.token, Completed())], worker_id=worker, limit=10
        )
        [job] = answer.jobs
    assert await complete(engine, job)


async def test_lanes_do_not_wait_for_each_other(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane=f"l{n % 5}") for n in range(20)])
    assert {job.lane for job in await claim(engine, worker, 20)} == {f"l{n}" for n in range(5)}


async def test_a_lane_belongs_to_its_queue(engine: Engine) -> None:
    worker = await a_worker(engine)
    for queue in ("a", "b"):
        await enqueue(engine, queue=queue, lane="same")
        await enqueue(engine, queue=queue, lane="same")
    assert sorted(job.queue for job in await claim(engine, worker, 10)) == ["a", "b"]


async def test_odd_lane_names_are_different_lanes(engine: Engine) -> None:
    worker = await a_worker(engine)
    names = ["a", "A", "a ", "á", "a:b", "a\\b", "a'b", 'a"b', "레인", "🎡", "%s", "{a}", "a" * 500]
    await engine.insert([a_job(lane=name) for name in names * 2])
    claimed = await claim(engine, worker, 100)
    assert sorted(job.lane or "" for job in claimed) == sorted(names)
    for job in claimed:
        assert await complete(engine, job)
    assert len(await claim(engine, worker, 100)) == len(names)


async def test_higher_priority_passes_inside_a_lane(engine: Engine) -> None:
    worker = await a_worker(engine)
    low = await enqueue(engine, lane="a")
    [running] = await claim(engine, worker, 10)
    assert running.id == low
    normal = await enqueue(engine, lane="a")
    urgent = await enqueue(engine, lane="a", priority=5)
    order = []
    while True:
        assert await complete(engine, running)
        jobs = await claim(engine, worker, 10)
        if not jobs:
            break
        [running] = jobs
        order.append(running.id)
    assert order == [urgent, normal]


async def test_higher_priority_beats_a_head_that_is_ready_but_not_claimed(engine: Engine) -> None:
    worker = await a_worker(engine)
    low = await enqueue(engine, lane="a")
    urgent = await enqueue(engine, lane="a", priority=5)
    [first] = await claim(engine, worker, 10)
    assert first.id == urgent
    assert await complete(engine, first)
    [second] = await claim(engine, worker, 10)
    assert second.id == low


async def test_only_the_worst_heads_of_a_wide_lane_are_beaten(engine: Engine) -> None:
    worker = await a_worker(engine)
    low = [await enqueue(engine, lane="a", width=2) for _ in range(3)]
    urgent = await enqueue(engine, lane="a", width=2, priority=1)
    assert [job.id for job in await claim(engine, worker, 10)] == [urgent, low[0]]


async def test_a_delayed_job_holds_no_place(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    later = await enqueue(engine, lane="a", delay=60)
    now = await enqueue(engine, lane="a")
    [job] = await claim(engine, worker, 10)
    assert job.id == now
    clock.advance(61)
    await engine.promote_due(10)
    assert await status(engine, later) is Status.PENDING
    assert await claim(engine, worker, 10) == []
    await complete(engine, job)
    [job] = await claim(engine, worker, 10)
    assert job.id == later


@pytest.mark.parametrize("where", ["waiting", "ready", "held"])
async def test_cancelling_frees_the_place(engine: Engine, clock: Clock, where: str) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a", hold=True)
    second = await enqueue(engine, lane="a", hold=True)
    third = await enqueue(engine, lane="a", hold=True)
    victim = {"waiting": second, "ready": first, "held": first}[where]
    if where == "held":
        [job] = await claim(engine, worker, 10)
        await retry(engine, job, 600)
    assert await engine.cancel([victim]) == {victim: True}
    order = []
    while jobs := await claim(engine, worker, 10):
        [job] = jobs
        order.append(job.id)
        await complete(engine, job)
    assert order == [job_id for job_id in (first, second, third) if job_id != victim]


async def test_a_failed_job_frees_its_place(engine: Engine) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="a")
    second = await enqueue(engine, lane="a")
    [job] = await claim(engine, worker, 10)
    await fail(engine, job)
    [job] = await claim(engine, worker, 10)
    assert job.id == second


async def test_a_wider_enqueue_widens_the_lane_and_a_narrower_one_drains_it(
    engine: Engine,
) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane="a", width=1) for _ in range(4)])
    running = await claim(engine, worker, 10)
    assert len(running) == 1
    await enqueue(engine, lane="a", width=3)
    running += await claim(engine, worker, 10)
    assert len(running) == 3
    await enqueue(engine, lane="a", width=1)
    await complete(engine, running.pop())
    assert await claim(engine, worker, 10) == []
    await complete(engine, running.pop())
    assert await claim(engine, worker, 10) == []
    await complete(engine, running.pop())
    assert len(await claim(engine, worker, 10)) == 1


async def test_a_rerun_job_queues_up_in_its_lane_again(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a")
    [job] = await claim(engine, worker, 10)
    await fail(engine, job)
    second = await enqueue(engine, lane="a")
    third = await enqueue(engine, lane="a")
    assert await engine.rerun([first]) == [first]
    order = []
    while jobs := await claim(engine, worker, 10):
        [job] = jobs
        order.append(job.id)
        await complete(engine, job)
    assert order == [second, third, first]


async def test_a_scheduled_job_run_now_respects_its_lane(engine: Engine) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="a")
    later = await enqueue(engine, lane="a", delay=600)
    assert await engine.rerun([later]) == [later]
    [job] = await claim(engine, worker, 10)
    assert job.id != later
    await complete(engine, job)
    [job] = await claim(engine, worker, 10)
    assert job.id == later


async def test_lane_views_tell_holder_and_waiting(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine, lane="a", width=2) for _ in range(5)]
    await enqueue(engine, queue="other", lane="b")
    await claim(engine, worker, 1, ["default"])
    [a, b] = await engine.lanes()
    assert (a.queue, a.lane, a.width, a.used, a.waiting) == ("default", "a", 2, 2, 3)
    assert set(a.holders) == set(ids[:2])
    assert (b.lane, b.used, b.waiting) == ("b", 1, 0)
    [only] = await engine.lanes(queue="other")
    assert only.lane == "b"
    [only] = await engine.lanes(queue="default", lane="a")
    assert only.lane == "a"


async def test_an_empty_lane_disappears(engine: Engine) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="a")
    [job] = await claim(engine, worker)
    await complete(engine, job)
    assert await engine.lanes() == []
    await engine.prune(older_than=0)
    await enqueue(engine, lane="a")
    assert len(await claim(engine, worker)) == 1


class Judge:
    """Watches from outside the engine that widths and order are kept."""

    def __init__(self, widths: dict[str, int]) -> None:
        self.widths = widths
        self.running: dict[str, set[str]] = defaultdict(set)
        self.done: set[str] = set()

    def start(self, job: ClaimedJob) -> None:
        assert job.lane is not None
        assert job.id not in self.done
        self.running[job.lane].add(job.id)
        assert len(self.running[job.lane]) <= self.widths[job.lane], job.lane

    def end(self, job: ClaimedJob) -> None:
        assert job.lane is not None
        self.running[job.lane].discard(job.id)


@pytest.mark.parametrize("batch", [1, 5, 50])
async def test_racing_workers_keep_every_lane(
    engine: Engine, open_another: Opener, batch: int
) -> None:
    """Enqueue, claim, finish, retry and release at random, from several processes' seats."""
    engines = [engine, await open_another(), await open_another()]
    widths = {f"lane{n}": 1 + n % 3 for n in range(8)}
    judge = Judge(widths)
    total = 240
    made: list[str] = []
    chance = random.Random(batch)

    async def produce(each: Engine) -> None:
        for _ in range(total // len(engines) // 4):
            jobs = []
            for _ in range(4):
                lane = chance.choice(list(widths))
                jobs.append(
                    a_job(
                        lane=lane,
                        width=widths[lane],
                        hold=widths[lane] == 1,
                        priority=chance.choice([0, 0, 0, 3]),
                        max_attempts=1000,
                    )
                )
            made.extend(job.id for job in jobs)
            await each.insert(jobs)

    async def consume(each: Engine, name: str) -> None:
        worker = await a_worker(each, name)
        limit = asyncio.get_running_loop().time() + 60
        while len(judge.done) < total:
            assert asyncio.get_running_loop().time() < limit, "stuck"
            await each.promote_due(100)
            for job in await claim(each, worker, batch):
                judge.start(job)
                await asyncio.sleep(0)
                kind = chance.random()
                judge.end(job)
                if kind < 0.7:
                    judge.done.add(job.id)
                    assert await complete(each, job)
                elif kind < 0.8:
                    assert await settle(each, job, Released())
                elif kind < 0.9:
                    assert await retry(each, job, 0)
                else:
                    assert await retry(each, job, 0.001)

    await asyncio.gather(
        *(produce(each) for each in engines),
        *(consume(each, f"w{n}") for n, each in enumerate(engines)),
    )
    assert judge.done == set(made)
    assert await engine.audit() == []
    assert (await the_job(engine, made[0])).status is Status.COMPLETED
