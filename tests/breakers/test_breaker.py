"""A breaker with real workers, on each engine: opens, tries one, goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import headrace
from headrace.breakers import store
from headrace.breakers.store import count_failures
from headrace.model.limits.breaker import Breaker
from tests.breakers.conftest import (
    LANE,
    PAUSE,
    Program,
    Service,
    Starter,
    all_done,
    apart,
    audited,
    closed,
    enqueue,
    opened,
    trials,
)
from tests.support.processes import until

LONG = Breaker(failures=3, within=60, pause=600)


async def test_nothing_more_is_started_after_so_many_failures(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(url, LONG)
    ids = await enqueue(app, 200)
    await start(app)
    view = await opened(app)
    assert (view.queue, view.lane, view.phase) == ("default", LANE, "open")
    assert view.cause == "3 failures within 60 s, the last a ConnectionError"
    assert (view.until - view.since).total_seconds() == 600
    # What ran, and what slots had begun before they were told.
    await until(lambda: not service.running)
    assert 3 <= len(service.calls) <= 12
    started = len(service.calls)
    await until(lambda: _all_parked(app, ids), "the others are parked")
    assert len(service.calls) == started


async def _all_parked(app: headrace.App, ids: list[str]) -> bool:
    jobs = await app.engine.get(ids)
    return all(job.parked or job.status.final or job.state.name == "WAITING" for job in jobs)


async def test_one_is_tried_after_each_pause_and_everything_goes_on_when_it_succeeds(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    app, other = program(url), program(url)
    ids = await enqueue(app, 60)
    await start(app)
    await start(other)
    view = await opened(app)
    await until(lambda: len(trials(service, view)) >= 3, "three trials")
    tried = trials(service, view)
    assert apart(tried) >= PAUSE
    # Of two workers one has opened it.
    assert [action for action, _ in await audited(app)] == ["breaker.open"]
    assert (await opened(app)).trials >= 2
    service.broken = False
    await closed(app)
    statuses = await all_done(app, ids)
    assert statuses.count("completed") >= 40
    # It goes on at once, not one by one.
    assert service.calls[-1] - service.calls[-30] < 29 * PAUSE


async def test_failures_of_several_workers_add_up_and_outlive_them(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    breaker = Breaker(failures=4, within=60, pause=600)
    first, second = program(url, breaker), program(url, breaker)
    for app in (first, second):
        worker = await start(app)
        assert await all_done(app, await enqueue(app, 1)) == ["failed"]
        await worker.stop()
    assert await first.breakers() == []
    await start(first)
    assert await all_done(first, await enqueue(first, 1)) == ["failed"]
    assert await first.breakers() == []
    assert await all_done(first, await enqueue(first, 1)) == ["failed"]
    assert (await opened(second)).failures == 4


async def test_a_trial_that_takes_longer_than_the_pause_stays_alone(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    app, other = program(url), program(url)
    ids = await enqueue(app, 20)
    await start(app)
    await start(other)
    began = await opened(app)
    await until(lambda: len(trials(service, began)) == 1, "a trial")
    service.slow = True
    await until(lambda: len(trials(service, began)) == 2, "another trial")
    view = await opened(app)
    assert view.phase == "trial"
    assert view.trial in ids

    async def renewed() -> bool:
        found = (await opened(app)).until - view.until
        return found.total_seconds() > 2 * PAUSE

    await until(renewed, "it is renewed")
    assert len(trials(service, began)) == 2
    service.slow = service.broken = False
    service.go.set()
    await closed(app)
    await all_done(app, ids)


async def test_other_lanes_go_on(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    lane = headrace.Lane("host:{number}", width=5, breaker=LONG)
    app = program(url, lane=lane)

    @app.task(lane="host:{number}")
    async def other(number: int) -> None: ...

    await app.enqueue_many(app.tasks["call"].job(1) for _ in range(20))
    await start(app)
    view = await opened(app)
    assert view.lane == "host:1"
    await until(lambda: not service.running)
    service.broken = False
    assert await all_done(app, [(await app.tasks["call"].enqueue(2)).id]) == ["completed"]
    # Another task in that lane waits as well.
    waits = await app.tasks["other"].enqueue(1)
    assert await all_done(app, [(await app.tasks["other"].enqueue(2)).id]) == ["completed"]
    await until(lambda: _all_parked(app, [waits.id]), "it is parked, or behind those that are")
    assert not (await app.get(waits.id)).status.final


async def test_a_job_with_a_cost_is_tried_once_in_a_pause(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    app = program(url, rate="100000/s", cost=0.5, count_retries=False, retries=3)
    await enqueue(app, 30)
    await start(app)
    view = await opened(app)
    await until(lambda: len(trials(service, view)) >= 2, "two trials")
    assert apart(trials(service, view)) >= PAUSE


async def test_what_is_claimed_ahead_is_given_back(
    url: str, program: Program, start: Starter, service: Service
) -> None:
    # Short jobs are claimed ahead, also by a worker that sees no failure itself.
    app, other = program(url, LONG), program(url, LONG)
    service.broken = False
    await start(app, max_workers=1)
    await start(other, max_workers=10)
    await all_done(app, await enqueue(app, 300))
    service.broken = True
    ids = await enqueue(app, 400)
    await opened(app)
    await until(lambda: not service.running)
    await until(lambda: _all_parked(app, ids), "the others are parked")
    jobs = await app.engine.get(ids)
    assert all(job.attempt <= 1 for job in jobs)
    assert sum(job.status.final for job in jobs) < 60


async def test_a_worker_that_does_not_know_what_is_open_starts_nothing(
    url: str,
    program: Program,
    start: Starter,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, other = program(url), program(url)
    await other.open()
    read, looks, may_look = store.open_breakers, 0, asyncio.Event()

    async def of_long_ago(engine: Any) -> Any:
        """As a worker sees it that has read before it opened, and was frozen since."""
        nonlocal looks
        if engine is not other.engine:
            return await read(engine)
        looks += 1
        if looks > 1:
            await may_look.wait()
        return {}

    monkeypatch.setattr(store, "open_breakers", of_long_ago)
    await enqueue(app, 60)
    await start(app)
    view = await opened(app)
    await start(other)
    await until(lambda: len(trials(service, view)) >= 3, "three trials")
    assert apart(trials(service, view)) >= PAUSE
    assert looks == 2
    may_look.set()


async def test_failures_that_are_counted_at_the_same_time_add_up(
    url: str, program: Program
) -> None:
    breaker = Breaker(failures=500, within=60, pause=1)
    apps = [program(url) for _ in range(3)]
    for app in apps:
        await app.open()
    now = await apps[0].engine.now()

    async def count(app: headrace.App, part: int) -> None:
        for number in range(10):
            at = now - 1 + (part * 10 + number) / 1_000
            await count_failures(app.engine, ("default", LANE), breaker, [at], now)

    await asyncio.gather(*(count(app, part) for part, app in enumerate(apps)))
    assert await count_failures(apps[0].engine, ("default", LANE), breaker, [], now) == 30
