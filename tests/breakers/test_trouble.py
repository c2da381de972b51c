"""Breakers where something else goes wrong: the engine fails or is slow, a clock goes back, other
programs are around.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import headrace
from headrace.breakers import store
from headrace.errors import EngineUnavailable, RecordConflict
from headrace.model.limits.breaker import Breaker, BreakerView, FailureTimes
from headrace.model.times import moment_of
from headrace.orchestrator.claiming.breaker_failures import SeenFailures
from tests.breakers.conftest import (
    LANE,
    Program,
    Service,
    Starter,
    all_done,
    enqueue,
    opened,
)
from tests.support.processes import until

KEY = ("default", LANE)
LONG = Breaker(failures=3, within=60, pause=600)


async def opened_by_failures(app: headrace.App, queue: str = "default") -> store.OpenBreaker:
    """Open a breaker as a worker does that has seen three failures."""
    await app.open()
    now = await app.engine.now()
    view = BreakerView(
        queue=queue,
        lane=LANE,
        since=moment_of(now),
        until=moment_of(now + 600),
        pause=600,
        task="call",
        failures=3,
        within=60,
    )
    found = await store.put(app.engine, view, 0)
    await store.hold(app.engine, found, now)
    return found


async def test_the_hold_ends_although_the_engine_failed_when_it_was_closed(
    here: str,
    program: Program,
    start: Starter,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.broken = False
    app = program(here, LONG)
    ids = await enqueue(app, 5)
    # One is tried soon; if it completes, the others would wait for the hold that it was given.
    await app.open_breaker(*KEY, pause=1)
    hold_lane = app.engine.hold_lane
    failed: list[str] = []

    async def fails_once(queue: str, lane: str, seconds: float) -> None:
        if seconds == 0 and not failed:
            failed.append(lane)
            raise EngineUnavailable("the engine is away")
        await hold_lane(queue, lane, seconds)

    monkeypatch.setattr(app.engine, "hold_lane", fails_once)
    await start(app)
    assert await all_done(app, ids) == ["completed"] * 5
    assert failed == [LANE]
    assert await store.held_until(app.engine, KEY) == 0


async def test_a_slow_engine_leaves_no_hold_behind(here: str, program: Program) -> None:
    app = program(here, LONG)
    breaker = await opened_by_failures(app)
    await app.engine.hold_lane(*KEY, 0.0)
    # The time was read long before.
    await store.hold(app.engine, breaker, await app.engine.now() - 5)
    assert await store.held_until(app.engine, KEY) == pytest.approx(breaker.until, abs=0.9)
    assert await app.close_breaker(*KEY)
    assert await store.held_until(app.engine, KEY) == 0


async def test_a_shorter_pause_by_hand_counts_from_now_on(here: str, program: Program) -> None:
    app = program(here, LONG)
    await opened_by_failures(app)
    view = await app.open_breaker(*KEY, pause=5)
    assert await store.held_until(app.engine, KEY) == pytest.approx(view.until.timestamp(), abs=0.9)


async def test_programs_that_have_the_task_without_a_breaker_leave_it_open(
    here: str, program: Program, start: Starter
) -> None:
    """One that was there before, and one that starts and serves other queues."""
    app = program(here, LONG)
    before, elsewhere = (program(here, lane=LANE) for _ in range(2))
    for each in (before, elsewhere):

        @each.task(breaker=LONG)
        async def other() -> None: ...

    older = await start(before)
    await opened_by_failures(app)
    assert older._runtime is not None
    breakers = older._runtime.breakers
    await until(lambda: breakers.open, "it is seen")
    await breakers.tick()
    await start(elsewhere, queues=["elsewhere"])
    assert (await opened(app)).lane == LANE


def test_failures_that_are_ahead_of_the_clock_do_not_count() -> None:
    breaker = Breaker(failures=3, within=60, pause=1)
    # Counted while the clock was a day ahead.
    kept = FailureTimes(60, (1_000.0, 87_400.0, 87_401.0))
    assert kept.adding(breaker, [1_001.0], 1_001.0).times == (1_000.0, 1_001.0)
    assert FailureTimes(60, (87_400.0,)).over(1_001.0)


async def test_failures_that_very_many_count_at_once_hold_up_no_other_lane(
    here: str, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = program(here)
    await app.open()
    put, busy = app.engine.record_put, "default/busy"

    async def refuses(kind: str, key: str, body: bytes, **fields: Any) -> Any:
        if key == busy:
            raise RecordConflict("somebody was faster")
        return await put(kind, key, body, **fields)

    monkeypatch.setattr(app.engine, "record_put", refuses)
    seen = SeenFailures()
    enough: list[store.Key] = []
    for lane in ("busy", "free"):
        seen.add(("default", lane), Breaker(failures=1, within=60, pause=1), "call", "OSError")

    async def on_enough(key: store.Key, *_: Any) -> None:
        enough.append(key)

    await seen.count(app.engine, on_enough)
    assert enough == [("default", "free")]
    # Counted in the next round.
    busy = ""
    await seen.count(app.engine, on_enough)
    assert enough == [("default", "free"), ("default", "busy")]
    record = await app.engine.record_get(store.FAILURES, "default/busy")
    assert record is not None
    assert len(msgspec.json.decode(record.body, type=FailureTimes).times) == 1
