"""What the cron dispatcher does with due, missed and overlapping times, on every engine."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.errors import (
    JobConflict,
)
from headrace.model.schedules.schedule import Missed, Schedule
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


async def test_a_due_time_makes_a_job(app: headrace.App, clock: Clock, make: Maker) -> None:
    app.add_schedule("report", "0 * * * *", name="hourly", params={"shop": "seoul"})
    dispatcher = make(app)
    pause = await dispatcher.tick()
    assert 0 < pause < 60.1
    assert await jobs_of(app) == []
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    [job] = await jobs_of(app)
    assert (job.task, job.source, job.lane) == ("report", "cron", "reports:seoul")
    assert job.key == "schedule:hourly:2026-03-01T13:00:00+00:00"
    assert job.args == {"shop": "seoul"}
    assert job.run_at == at("2026-03-01T13:00")
    assert job.meta == {"schedule": "hourly", "scheduled_for": "2026-03-01T13:00:00Z"}
    await settled(dispatcher)
    assert len(await jobs_of(app)) == 1
    state, _ = await app.schedules.records.state("hourly")
    assert state.cursor == at("2026-03-01T13:00")
    assert [run.job_id for run in state.runs] == [job.id]


async def test_it_sleeps_until_the_next_time(local: headrace.App, make: Maker) -> None:
    local.add_schedule("report", "1 12 * * *")  # in 30 s
    dispatcher = make(local)
    assert 25 < await dispatcher.tick() < 31
    long = make(local, poll_interval_seconds=3_600, max_sleep_seconds=7)
    assert await long.tick() == 7
    local.schedules.declared.clear()


async def test_without_schedules_it_looks_again_at_the_next_poll(
    local: headrace.App, make: Maker
) -> None:
    assert 59 < await make(local).tick() <= 60.01


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("skip", []),
        ("latest", ["03-01 17:00"]),
        ("all", ["03-01 13:00", "03-01 14:00", "03-01 15:00", "03-01 16:00", "03-01 17:00"]),
    ],
)
async def test_missed_times(
    app: headrace.App, clock: Clock, make: Maker, missed: Missed, expected: list[str]
) -> None:
    app.add_schedule("report", "0 * * * *", missed=missed)
    await make(app).tick()
    go_to(clock, at("2026-03-01T17:30"))
    restarted = make(app)
    await settled(restarted)
    assert await made_for(app) == expected
    state, _ = await app.schedules.records.state("report")
    assert state.cursor == at("2026-03-01T17:00")
    skipped = [(skip.reason, skip.count) for skip in state.skips]
    assert skipped == ([("missed", 5 - len(expected))] if len(expected) < 5 else [])
    go_to(clock, at("2026-03-01T18:00"))
    await settled(restarted)
    assert await made_for(app) == [*expected, "03-01 18:00"]


async def test_a_time_that_is_a_little_late_is_not_missed(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    local.add_schedule("report", "0 * * * *", missed="skip")
    dispatcher = make(local)
    await dispatcher.tick()
    go_to(clock, at("2026-03-01T15:00:40"))
    await settled(dispatcher)
    assert await made_for(local) == ["03-01 15:00"]
    state, _ = await local.schedules.records.state("report")
    assert [(skip.first, skip.last) for skip in state.skips] == [
        (at("2026-03-01T13:00"), at("2026-03-01T14:00"))
    ]


async def test_missed_times_are_made_in_bounded_steps(
    app: headrace.App, clock: Clock, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    app.add_schedule("clean", "* * * * *", missed="all", name="often")
    app.add_schedule("report", "0 0 * * *", missed="all", name="daily")
    await make(app).tick()
    go_to(clock, at("2026-03-02T00:00:30"))
    dispatcher = make(app, most_at_once=300)
    assert await dispatcher.tick() < 0.01
    assert len(await jobs_of(app, "clean")) == 300
    assert len(await jobs_of(app, "report")) == 1  # the other had its turn
    assert "300 jobs made at once for missed times, more are to come" in caplog.text
    await settled(dispatcher)
    assert len(await jobs_of(app, "clean")) == 720
    assert len({job.run_at for job in await jobs_of(app, "clean")}) == 720


async def test_years_of_missed_times_are_passed_over_fast(
    local: headrace.App, clock: Clock, make: Maker
) -> None:
    local.add_schedule("clean", "* * * * *", missed="latest")
    local.add_schedule("report", "* * * * *", missed="skip")
    await make(local).tick()
    go_to(clock, at("2029-03-01T00:00:01"))
    began = time.process_time()
    await settled(make(local))
    assert time.process_time() - began < 5
    assert [job.run_at for job in await jobs_of(local, "clean")] == [at("2029-03-01T00:00")]
    state, _ = await local.schedules.records.state("clean")
    assert [skip.count for skip in state.skips] == [1_001]


async def test_no_overlap(app: headrace.App, clock: Clock, make: Maker) -> None:
    app.add_schedule("report", "0 * * * *", allow_overlap=False, missed="all")
    dispatcher = make(app)
    await dispatcher.tick()
    go_to(clock, at("2026-03-01T15:10"))
    await settled(dispatcher)
    assert await made_for(app) == ["03-01 13:00"]  # the others fell into its time
    go_to(clock, at("2026-03-01T16:00"))
    await settled(dispatcher)
    assert await made_for(app) == ["03-01 13:00"]
    state, _ = await app.schedules.records.state("report")
    assert state.cursor == at("2026-03-01T16:00")
    assert [(skip.reason, skip.count, skip.last) for skip in state.skips] == [
        ("overlap", 1, at("2026-03-01T16:00")),
        ("overlap", 2, at("2026-03-01T15:00")),
    ]
    await finish_all(app)
    go_to(clock, at("2026-03-01T17:00"))
    await settled(dispatcher)
    assert await made_for(app) == ["03-01 13:00", "03-01 17:00"]


async def test_it_sleeps_and_fires_by_itself(local: headrace.App, make: Maker) -> None:
    await local.schedules.add(Schedule(name="s", expression="0 * * * *", task="report"))
    local.schedules.least_interval = 1
    dispatcher = make(local, min_cron_interval_seconds=1)
    dispatcher.start()
    await local.schedules.add(Schedule(name="fast", expression="* * * * * *", task="clean"))

    async def twice() -> bool:
        return len(await jobs_of(local, "clean")) >= 2

    happened: bool = await until(twice, "two jobs")
    assert happened
    assert dispatcher.healthy
    assert dispatcher.lag < 5


async def test_a_change_while_schedules_are_read_is_taken_up_at_once(
    local: headrace.App, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = make(local)
    await dispatcher.sync()
    records = local.schedules.records
    read = records.all

    async def read_and_change() -> Any:
        found = await read()
        monkeypatch.undo()
        await local.schedules.add(Schedule(name="new", expression="0 * * * *", task="report"))
        return found

    monkeypatch.setattr(records, "all", read_and_change)
    await dispatcher.tick()
    assert list(dispatcher.next_times) == []
    await dispatcher.tick()
    assert list(dispatcher.next_times) == ["new"]


async def test_schedules_that_could_not_be_read_are_read_in_the_next_round(
    local: headrace.App, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await local.schedules.add(Schedule(name="s", expression="0 * * * *", task="report"))
    dispatcher = make(local)
    await dispatcher.sync()

    async def fail() -> Any:
        monkeypatch.undo()
        raise headrace.EngineUnavailable("not now")

    monkeypatch.setattr(local.schedules.records, "all", fail)
    with pytest.raises(headrace.EngineUnavailable):
        await dispatcher.tick()
    await dispatcher.tick()
    assert list(dispatcher.next_times) == ["s"]


async def test_a_schedule_that_cannot_be_fired_keeps_no_other_waiting(
    local: headrace.App, clock: Clock, make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "headrace.cron")
    for name, task in (("a", "clean"), ("b", "report"), ("c", "report")):
        await local.schedules.add(Schedule(name=name, expression="0 * * * *", task=task))
    gone = local.tasks.pop("clean")
    await local.engine.record_put("schedule", "broken", b'{"no": "schedule"}')
    dispatcher = make(local)
    go_to(clock, at("2026-03-01T13:00:05"))
    await settled(dispatcher)
    assert len(await jobs_of(local, "report")) == 2
    assert list(dispatcher.problems) == ["a"]
    assert 'Unknown task "clean"' in caplog.text
    assert 'schedule "broken" cannot be read' in caplog.text
    clock.advance(61)
    await settled(dispatcher)
    assert caplog.text.count('Unknown task "clean"') == 1
    local.tasks["clean"] = gone
    clock.advance(61)
    await settled(dispatcher)
    assert await made_for(local, "clean") == ["03-01 13:00"]
    assert dispatcher.problems == {}


async def test_trigger_makes_a_job_now(app: headrace.App, clock: Clock, make: Maker) -> None:
    schedule = Schedule(
        name="s", expression="0 * * * *", task="report", allow_overlap=False, params={"days": 3}
    )
    await app.schedules.add(schedule)
    job = await app.schedules.trigger("s", source="cli")
    [found] = await jobs_of(app)
    assert (found.id, found.args, found.source, found.key) == (job.id, {"days": 3}, "cli", None)
    with pytest.raises(JobConflict, match="allows no overlap"):
        await app.schedules.trigger("s")
    dispatcher = make(app)
    go_to(clock, at("2026-03-01T13:00"))
    await settled(dispatcher)
    assert len(await jobs_of(app)) == 1  # its own times see the triggered job
    await app.schedules.trigger("s", force=True)
    assert len(await jobs_of(app)) == 2
