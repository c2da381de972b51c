"""What is forgotten of schedules that are gone: how far they had come, a day later."""

from __future__ import annotations

import headrace
from headrace.clock import Clock
from headrace.model.schedules.schedule import Schedule
from tests.dispatchers.cron.conftest import Maker, at, go_to, made_for, settled

HOURLY = Schedule(name="gone", expression="0 * * * *", task="report", missed="all")


async def known(app: headrace.App) -> list[str]:
    return sorted(await app.schedules.records.states())


async def test_how_far_a_removed_schedule_had_come_is_forgotten_a_day_later(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    app.add_schedule("clean", "0 * * * *", name="stays")
    await app.schedules.add(HOURLY)
    dispatcher = make(app)
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    await app.schedules.remove("gone")
    go_to(clock, at("2026-03-02T12:30"))
    await settled(dispatcher)
    # Not yet: it may come back, and its past must not be done again.
    assert await known(app) == ["gone", "stays"]
    go_to(clock, at("2026-03-02T14:30"))
    await settled(dispatcher)
    assert await known(app) == ["stays"]


async def test_a_schedule_that_comes_back_later_does_not_do_its_past_again(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    await app.schedules.add(HOURLY)
    dispatcher = make(app)
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    await app.schedules.remove("gone")
    go_to(clock, at("2026-03-03T12:30"))
    await settled(dispatcher)
    assert await known(app) == []
    await app.schedules.add(HOURLY)
    go_to(clock, at("2026-03-03T13:00"))
    await settled(dispatcher)
    assert await made_for(app) == ["03-01 13:00", "03-03 13:00"]


async def test_a_schedule_that_does_nothing_for_long_is_not_forgotten(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    await local.schedules.add(HOURLY)
    dispatcher = make(local)
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    await local.schedules.enable("gone", False)
    go_to(clock, at("2026-03-09T12:30"))
    await settled(dispatcher)
    assert await known(local) == ["gone"]


async def test_problems_of_removed_schedules_are_forgotten(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    await local.schedules.add(HOURLY)
    dispatcher = make(local)
    del local.tasks["report"]
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    assert list(dispatcher.problems) == ["gone"]
    await local.schedules.remove("gone")
    dispatcher.changed()
    await settled(dispatcher)
    assert dispatcher.problems == {}
