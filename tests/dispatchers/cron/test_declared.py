"""Schedules in code that no dispatcher has stored yet: seen, and told about."""

from __future__ import annotations

import pytest

from headrace import App
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.dispatchers.cron.views import schedule_views
from headrace.errors import InvalidSetting, UnknownSchedule


def an_app() -> App:
    app = App("sqlite://")

    @app.schedule("0 3 * * *", name="nightly")
    @app.schedule("@hourly")
    @app.task("report")
    async def report() -> None: ...

    return app


async def test_declared_schedules_are_listed_before_any_dispatcher_has_run() -> None:
    async with an_app() as app:
        await app.put_schedule("by-hand", "@daily", "report")
        found = await app.list_schedules()
        assert [(each.name, each.stored) for each in found] == [
            ("by-hand", True),
            ("nightly", False),
            ("report", False),
        ]
        assert len(found[1].next) == 5
        assert (await app.get_schedule("nightly")).words == "at 03:00 every day"
        assert len((await app.next_times("nightly", 3)).next) == 3
        await CronDispatcher(app).sync()
        assert {each.stored for each in await app.list_schedules()} == {True}


async def test_pages_have_each_schedule_once() -> None:
    async with an_app() as app:
        for name in ("a", "b", "o", "z"):
            await app.put_schedule(name, "@daily", "report")
        seen: list[str] = []
        while True:
            page = await schedule_views(
                app.schedules, app.clock.utcnow(), after=seen[-1] if seen else "", limit=2
            )
            seen += [each.name for each in page]
            if len(page) < 2:
                break
        assert seen == ["a", "b", "nightly", "o", "report", "z"]


async def test_one_that_is_not_stored_can_be_triggered_and_disabled() -> None:
    async with an_app() as app:
        assert (await app.trigger_schedule("nightly")).task == "report"
        await app.enable_schedule("nightly", False)
        with pytest.raises(InvalidSetting, match="declared in code, and not stored yet"):
            await app.remove_schedule("report")
        await CronDispatcher(app).sync()
        assert not (await app.get_schedule("nightly")).enabled, "a dispatcher keeps what was said"
        with pytest.raises(UnknownSchedule, match='no schedule is called "nigtly"'):
            await app.get_schedule("nigtly")
