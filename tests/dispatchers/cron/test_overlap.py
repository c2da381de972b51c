"""Schedules that allow no overlap, and states that cannot be read."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

import headrace
from headrace.clock import Clock
from headrace.errors import InvalidSetting, JobConflict, UnknownSchedule
from headrace.model.schedules.schedule import RUNS_KEPT, Schedule
from tests.dispatchers.cron.chaos import failing
from tests.dispatchers.cron.conftest import (
    START,
    Maker,
    at,
    finish_all,
    go_to,
    jobs_of,
    made_for,
    settled,
)

TIMES = 8


@pytest.mark.parametrize("ahead", [20, 300, -20])
async def test_a_clock_that_is_ahead_skips_nothing(
    app: headrace.App, clock: Clock, ahead: float
) -> None:
    every_ten = Schedule(
        name="s", expression="*/10 * * * * *", task="clean", allow_overlap=False, missed="all"
    )
    app.schedules.least_interval = 1
    await app.schedules.add(every_ten)
    dispatcher = failing(app, lambda *_: None, min_cron_interval_seconds=1)
    theirs = Clock()
    theirs.offset = clock.offset + ahead
    dispatcher.app.clock = dispatcher.firing._host.clock = theirs
    go_to(clock, START + timedelta(seconds=1))
    for _ in range(TIMES):
        clock.advance(10)
        theirs.offset = clock.offset + ahead
        await settled(dispatcher)
        await app.engine.promote_due(100)
        await finish_all(app)
    state, _ = await app.schedules.records.state("s")
    assert state.skips == []
    assert len(await jobs_of(app)) >= TIMES + min(0, ahead / 10)


async def test_it_does_not_spin_while_its_clock_is_ahead(app: headrace.App, clock: Clock) -> None:
    await app.schedules.add(
        Schedule(name="s", expression="0 * * * *", task="clean", allow_overlap=False)
    )
    dispatcher = failing(app, lambda *_: None)
    theirs = Clock()
    theirs.offset = clock.offset + 60
    dispatcher.app.clock = dispatcher.firing._host.clock = theirs
    go_to(clock, at("2026-03-01T12:59:30"))
    theirs.offset = clock.offset + 60
    assert 20 < await dispatcher.tick() < 31
    assert await jobs_of(app) == []


async def test_an_unfinished_job_is_not_forgotten_after_many_triggers(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    hourly = Schedule(name="s", expression="0 * * * *", task="report", allow_overlap=False)
    await app.schedules.add(hourly)
    dispatcher = make(app)
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    [long] = await jobs_of(app)
    for number in range(RUNS_KEPT + 5):
        forced = await app.schedules.trigger("s", force=True)
        await app.cancel(forced.id)
        if number > RUNS_KEPT:
            with pytest.raises(JobConflict, match=f"its job {long.id} is pending"):
                await app.schedules.trigger("s")
    go_to(clock, at("2026-03-01T14:00"))
    await settled(dispatcher)
    state, _ = await app.schedules.records.state("s")
    assert [skip.reason for skip in state.skips] == ["overlap"]
    assert state.unfinished == [long.id]
    await finish_all(app)
    go_to(clock, at("2026-03-01T15:00"))
    await settled(dispatcher)
    assert (await made_for(app))[-1] == "03-01 15:00"
    state, _ = await app.schedules.records.state("s")
    assert state.unfinished == []


async def test_a_state_that_cannot_be_read_concerns_its_own_schedule(
    app: headrace.App, clock: Clock, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "headrace.cron")
    for name in ("a", "bad", "c"):
        await app.schedules.add(Schedule(name=name, expression="0 * * * *", task="report"))
    await app.engine.record_put("schedule-state", "bad", b'{"runs": 7}')
    dispatcher = make(app)
    go_to(clock, at("2026-03-01T13:00:05"))
    await settled(dispatcher)
    assert sorted(job.meta["schedule"] for job in await jobs_of(app)) == ["a", "c"]
    assert list(dispatcher.problems) == ["bad"]
    assert 'the state of schedule "bad" cannot be read' in caplog.text
    assert [each.name for each in await app.list_schedules()] == ["a", "bad", "c"]
    with pytest.raises(InvalidSetting, match=r"headrace schedules remove bad\) and add it again"):
        await app.get_schedule("bad")
    # The remedy that it names.
    await app.remove_schedule("bad")
    await app.schedules.add(Schedule(name="bad", expression="0 * * * *", task="report"))
    go_to(clock, at("2026-03-01T14:00"))
    await settled(dispatcher)
    assert dispatcher.problems == {}
    assert len(await jobs_of(app)) == 5


async def test_a_schedule_that_cannot_be_read_can_be_removed(app: headrace.App) -> None:
    await app.engine.record_put("schedule", "odd", b"{}")
    await app.remove_schedule("odd")
    assert await app.engine.record_get("schedule", "odd") is None
    with pytest.raises(UnknownSchedule):
        await app.remove_schedule("odd")
