"""Schedules that people declare, change, disable and remove, and what dispatchers make of it."""

from __future__ import annotations

import pytest

import headrace
from headrace.clock import Clock
from headrace.errors import (
    InvalidArguments,
    InvalidSetting,
    UnknownSchedule,
    UnknownTask,
)
from headrace.model.schedules.schedule import Schedule
from tests.dispatchers.cron.conftest import (
    Maker,
    at,
    finish_all,
    go_to,
    jobs_of,
    made_for,
    settled,
)
from tests.support.processes import until


async def test_disabled_times_are_not_made_up_for(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    app.add_schedule("report", "0 * * * *", missed="all")
    dispatcher = make(app)
    await dispatcher.tick()
    await app.schedules.enable("report", False)
    go_to(clock, at("2026-03-01T15:30"))
    await settled(dispatcher)
    await app.schedules.enable("report")
    await settled(dispatcher)
    assert await jobs_of(app) == []
    go_to(clock, at("2026-03-01T16:00"))
    await settled(dispatcher)
    assert await made_for(app) == ["03-01 16:00"]


async def test_what_people_changed_survives_a_restart(local: headrace.App, make: Maker) -> None:
    local.add_schedule("report", "0 * * * *")
    await make(local).tick()
    await local.schedules.enable("report", False)
    await make(local).tick()
    assert not (await local.schedules.get("report")).schedule.enabled
    local.schedules.declared["report"] = Schedule(
        name="report", expression="5 * * * *", task="report"
    )
    await make(local).tick()
    kept = await local.schedules.get("report")
    assert (kept.schedule.enabled, kept.schedule.expression) == (False, "5 * * * *")


async def test_other_times_do_not_replay_the_past(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    schedule = Schedule(name="s", expression="0 * * * *", task="report", missed="all")
    await local.schedules.add(schedule)
    dispatcher = make(local)
    go_to(clock, at("2026-03-01T14:59"))
    often = Schedule(name="s", expression="*/10 * * * *", task="report", missed="all")
    await local.schedules.add(often, replace=True)
    await settled(dispatcher)
    assert await jobs_of(local) == []
    go_to(clock, at("2026-03-01T15:10"))
    await settled(dispatcher)
    assert await made_for(local) == ["03-01 15:00", "03-01 15:10"]


async def test_other_params_keep_the_times(local: headrace.App, clock: Clock, make: Maker) -> None:
    schedule = Schedule(name="s", expression="0 * * * *", task="report", missed="all")
    await local.schedules.add(schedule)
    go_to(clock, at("2026-03-01T13:30"))
    changed = Schedule(
        name="s", expression="0 * * * *", task="report", missed="all", params={"days": 7}
    )
    await local.schedules.add(changed, replace=True)
    await settled(make(local))
    [job] = await jobs_of(local)
    assert (job.args, job.run_at) == ({"days": 7}, at("2026-03-01T13:00"))


async def test_a_schedule_that_is_removed_and_added_again_does_not_replay(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    schedule = Schedule(name="s", expression="0 * * * *", task="report", missed="all")
    await app.schedules.add(schedule)
    dispatcher = make(app)
    go_to(clock, at("2026-03-01T13:00:10"))
    await settled(dispatcher)
    assert len(await jobs_of(app)) == 1
    await app.schedules.remove("s")
    go_to(clock, at("2026-03-01T17:10"))
    await settled(dispatcher)
    await finish_all(app)
    assert await app.engine.prune(older_than=0) == 1
    await app.schedules.add(schedule)
    await settled(dispatcher)
    assert await jobs_of(app) == []
    go_to(clock, at("2026-03-01T18:00"))
    await settled(dispatcher)
    assert await made_for(app) == ["03-01 18:00"]


async def test_a_change_in_the_same_process_is_taken_up_at_once(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    dispatcher = make(local, poll_interval_seconds=3_600, max_sleep_seconds=3_600)
    dispatcher.start()
    await dispatcher.next_round(10)
    await local.schedules.add(Schedule(name="s", expression="* * * * *", task="report"))
    await until(lambda: "s" in dispatcher.next_times, "the new schedule")
    await local.schedules.remove("s")
    await until(lambda: "s" not in dispatcher.next_times, "its removal")


async def test_a_change_elsewhere_is_taken_up_at_the_next_poll(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    dispatcher = make(local)
    await dispatcher.tick()
    async with headrace.App(settings=local.settings, clock=clock) as other:
        other.tasks = local.tasks
        await other.schedules.add(Schedule(name="s", expression="*/5 * * * *", task="report"))
    clock.advance(61)
    await dispatcher.tick()
    assert "s" in dispatcher.next_times
    async with headrace.App(settings=local.settings, clock=clock) as other:
        await other.schedules.enable("s", False)
    # Before the next poll, but it looks before it fires.
    dispatcher.next_times["s"] = clock.utcnow()
    go_to(clock, at("2026-03-01T12:05"))
    await settled(dispatcher)
    assert await jobs_of(local) == []


async def test_what_fires_too_often_is_refused_everywhere(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    often = Schedule(name="s", expression="*/10 * * * * *", task="clean")
    with pytest.raises(InvalidSetting, match="fires 10 s apart"):
        await local.schedules.add(often)
    assert await local.schedules.records.all() == []
    local.schedules.least_interval = 1
    await local.schedules.add(often)  # somebody with other settings did
    dispatcher = make(local)
    clock.advance(100)
    await dispatcher.tick()
    assert await jobs_of(local) == []
    assert "fires 10 s apart" in dispatcher.problems["s"]


async def test_bad_declarations_are_refused_in_code(local: headrace.App) -> None:
    local.add_schedule("report", "0 * * * *")
    with pytest.raises(InvalidSetting, match="two schedules are called"):
        local.add_schedule("report", "5 * * * *")
    with pytest.raises(InvalidArguments, match="it takes: shop, days"):
        local.add_schedule("report", "0 * * * *", name="a", params={"shops": 3})
    with pytest.raises(UnknownTask, match='Registered: "report"'):
        local.add_schedule("reprot", "0 * * * *", name="b")
    with pytest.raises(InvalidSetting, match=r"above @app\.task"):

        @local.schedule("0 * * * *")  # type: ignore[type-var]
        async def plain() -> None: ...

    with pytest.raises(InvalidSetting, match='missed must be "skip"'):
        local.add_schedule("report", "0 * * * *", name="c", missed="never")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match='did you mean "Asia/Seoul"'):
        local.add_schedule("report", "0 * * * *", name="d", tz="Asia/Soul")
    assert list(local.schedules.declared) == ["report"]


async def test_the_decorator_leaves_the_task_as_it_was(local: headrace.App) -> None:
    @local.schedule("0 3 * * *", tz="Asia/Seoul", name="night", params={"day": 1})
    @local.schedule("0 15 * * *", tz="Asia/Seoul", name="noon")
    @local.task
    async def mail(day: int = 0) -> int:
        return day

    assert await mail(day=3) == 3
    assert local.tasks["mail"] is mail
    assert sorted(local.schedules.declared) == ["night", "noon"]


async def test_schedules_that_code_no_longer_declares_are_removed(
    local: headrace.App, make: Maker
) -> None:
    async def names(owner: str | None, *declared: str) -> list[str]:
        local.reconfigure(
            headrace.Settings(url=local.settings.url, app="jobs", schedules_owner=owner)
        )
        local.schedules.declared = {
            name: Schedule(name=name, expression="0 * * * *", task="report") for name in declared
        }
        await make(local).sync()
        return [kept.schedule.name for kept in await local.schedules.records.all()]

    assert await names("shop", "a", "b") == ["a", "b"]
    assert await names("other", "c") == ["a", "b", "c"]
    assert await names("shop", "b") == ["b", "c"]
    assert await names(None, "d") == ["b", "c", "d"]
    assert await names(None, "e") == ["b", "c", "d", "e"]  # nobody can tell whose d was


async def test_unknown_schedules_name_the_nearest(local: headrace.App) -> None:
    await local.schedules.add(Schedule(name="nightly", expression="0 3 * * *", task="report"))
    with pytest.raises(UnknownSchedule, match=r'no schedule is called "nightyl".*"nightly"'):
        await local.schedules.get("nightyl")
    with pytest.raises(InvalidSetting, match="exists already"):
        await local.schedules.add(Schedule(name="nightly", expression="0 4 * * *", task="report"))


async def test_one_that_cannot_be_read_is_told_of_once(
    app: headrace.App, caplog: pytest.LogCaptureFixture
) -> None:
    await app.open()
    await app.engine.record_put("schedule", "odd", b"{}")
    for _ in range(3):
        assert list(await app.list_schedules()) == []
    assert caplog.text.count('schedule "odd" cannot be read') == 1
    await app.engine.record_put("schedule", "odd", b"[]")
    await app.list_schedules()
    assert caplog.text.count('schedule "odd" cannot be read') == 2
