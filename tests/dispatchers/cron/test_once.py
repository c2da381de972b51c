"""Each time of a schedule makes one job: whoever dies when, however many dispatchers there are."""

from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.errors import EngineUnavailable
from headrace.model.schedules.schedule import Schedule, ScheduleState
from tests.dispatchers.cron.calendar import fired
from tests.dispatchers.cron.chaos import At, AtRandom, AtVerb, Killed, failing, until_death
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

HOURLY = Schedule(name="s", expression="0 * * * *", task="report", missed="all")


@pytest.mark.parametrize("error", [Killed(), EngineUnavailable("away")], ids=["killed", "away"])
async def test_dying_at_any_step_neither_loses_nor_repeats(
    app: headrace.App, clock: Clock, make: Maker, error: BaseException
) -> None:
    await app.schedules.add(HOURLY)
    expected, places = [], []
    for number in range(1, 40):
        moment = at("2026-03-01T13:00") + timedelta(hours=number)
        if number == 1:
            expected.append("03-01 13:00")
        go_to(clock, moment)
        expected.append(f"{moment:%m-%d %H:%M}")
        point = At(number, error)
        victim = failing(app, point)
        try:
            await settled(victim)
        except (Killed, EngineUnavailable):
            places.append(point.where)
        if isinstance(error, EngineUnavailable):
            await settled(victim)  # it goes on by itself
        await settled(make(app))
        assert await made_for(app) == expected, point.where
        await finish_all(app)
        if not point.where:
            break
    assert {"before insert", "after insert", "before record_get", "after record_get"} <= set(places)
    state, _ = await app.schedules.records.state("s")
    assert state.skips == []


async def died_at_insert(app: headrace.App, clock: Clock, when: str) -> None:
    """Let a dispatcher die right before or after it makes the job of its first time."""
    go_to(clock, at("2026-03-01T13:00"))
    with pytest.raises(Killed):
        await settled(failing(app, AtVerb("insert", when, Killed())))


async def test_a_job_that_was_made_finished_and_pruned_in_between_is_not_made_again(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    """Its dispatcher died before it knew, and nothing but the schedule's state reminds of it."""
    await app.schedules.add(HOURLY)
    await died_at_insert(app, clock, "after")
    assert await finish_all(app) == 1
    assert await app.engine.prune(keep=0) == 1
    await settled(make(app))
    assert await jobs_of(app) == []
    go_to(clock, at("2026-04-01T14:00"))
    await settled(make(app))
    assert (await made_for(app))[0] == "03-01 14:00"
    state, _ = await app.schedules.records.state("s")
    assert state.skips == []


async def test_a_job_that_was_not_made_is_made_by_another_however_late(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    await app.schedules.add(HOURLY)
    await died_at_insert(app, clock, "before")
    assert await jobs_of(app) == []
    go_to(clock, at("2026-03-20T13:10"))
    await settled(make(app))
    assert (await made_for(app))[0] == "03-01 13:00"


async def test_a_time_that_was_not_taken_before_the_task_changed_is_not_made_up_for(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    await app.schedules.add(HOURLY)
    await died_at_insert(app, clock, "before")
    other = Schedule(name="s", expression="0 * * * *", task="clean", missed="all")
    await app.schedules.add(other, replace=True)
    await settled(make(app))
    assert await jobs_of(app) == []


async def test_a_job_that_somebody_asks_for_is_made_with_its_run_or_not_at_all(
    app: headrace.App, clock: Clock
) -> None:
    await app.schedules.add(HOURLY)
    for when, jobs in (("before", 0), ("after", 1)):
        victim = failing(app, AtVerb("insert", when, EngineUnavailable("away")))
        with pytest.raises(EngineUnavailable):
            await victim.schedules.trigger("s")
        state, _ = await app.schedules.records.state("s")
        assert len(await jobs_of(app)) == len(state.runs) == jobs


async def test_a_dispatcher_that_was_held_up_does_not_fire_again(
    app: headrace.App, clock: Clock, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.schedules.add(HOURLY)
    slow, fast = failing(app, lambda *_: None), make(app)
    await slow.tick()
    go_to(clock, at("2026-03-01T13:00"))
    state_of = slow.schedules.records.state
    held_up: list[str] = []

    async def held(name: str) -> tuple[ScheduleState, int]:
        stale = await state_of(name)
        if not held_up:
            held_up.append(name)
            # Meanwhile another makes the job, it runs, and nothing reminds of it any more.
            await settled(fast)
            assert await finish_all(app) == 1
            assert await app.engine.prune(older_than=0) == 1
        return stale

    monkeypatch.setattr(slow.schedules.records, "state", held)
    await settled(slow)
    assert held_up
    assert await jobs_of(app) == []


async def test_dispatchers_that_wake_at_once_make_one_job(
    app: headrace.App, clock: Clock, make: Maker
) -> None:
    for number in range(5):
        await app.schedules.add(
            Schedule(name=f"s{number}", expression="*/10 * * * *", task="report", missed="all")
        )
    async with headrace.App(settings=app.settings, clock=clock) as other:
        other.tasks = app.tasks
        dispatchers = [make(app), make(other), make(app)]
        for _ in range(20):
            clock.advance(600)
            await asyncio.gather(*(settled(each) for each in dispatchers))
        assert sum(each.firing.made for each in dispatchers) == 100
    times = [(job.meta["schedule"], job.run_at) for job in await jobs_of(app)]
    assert len(times) == len(set(times)) == 100


# -- months -----------------------------------------------------------------------------------

MONTHS = [
    Schedule(name="berlin", expression="30 2 * * *", task="report", tz="Europe/Berlin"),
    Schedule(name="york", expression="0,30 1-3 * * 0", task="report", tz="America/New_York"),
    Schedule(name="howe", expression="*/15 2 * * 0", task="clean", tz="Australia/Lord_Howe"),
    Schedule(name="seoul", expression="0 9 * * 1-5", task="report", tz="Asia/Seoul"),
]
END = datetime(2026, 11, 10, tzinfo=UTC)
KEY = re.compile(r"schedule:(\w+):(.+)")


@pytest.fixture
async def engines(url: str, app: headrace.App, clock: Clock) -> AsyncIterator[list[Engine]]:
    """Three doors to the same store, as three processes have."""
    opened = [open_engine(url, clock=clock) for _ in range(3)]
    for engine in opened:
        await engine.open()
    yield opened
    for engine in opened:
        await engine.close()


async def test_months_of_three_dispatchers_that_are_killed_at_random(
    app: headrace.App, clock: Clock, engines: list[Engine]
) -> None:
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    print(f"seed {seed}")
    for schedule in MONTHS:
        await app.schedules.add(msgspec.structs.replace(schedule, missed="all"))

    def start(engine: Engine) -> CronDispatcher:
        return failing(app, AtRandom(dice, 0.03), engine)

    dispatchers = [start(engine) for engine in engines]
    seen: dict[tuple[str, datetime], set[str]] = defaultdict(set)
    deaths = 0
    while clock.utcnow() < END:
        # Small steps while clocks are changed somewhere, larger ones in summer.
        summer = at("2026-04-20T00:00") < clock.utcnow() < at("2026-09-20T00:00")
        clock.advance(dice.uniform(12, 84) * (4 if summer else 1) * 3600)
        lived = await asyncio.gather(
            *(until_death(each, dice, patience=0.1) for each in dispatchers)
        )
        for number, lives in enumerate(lived):
            if not lives:
                deaths += 1
                dispatchers[number] = start(engines[number])
        await look(app, seen)
    await finished(app, clock, dispatchers)
    await look(app, seen)
    assert deaths > 5
    for schedule in MONTHS:
        expected = fired(schedule.expression, schedule.tz, START, END)
        found = {time: ids for (name, time), ids in seen.items() if name == schedule.name}
        assert sorted(time for time in found if time <= END) == expected
        assert {len(ids) for ids in found.values()} == {1}
        state, _ = await app.schedules.records.state(schedule.name)
        assert state.skips == []


async def look(app: headrace.App, seen: dict[tuple[str, datetime], set[str]]) -> None:
    """Write down which jobs there are, let them finish, and forget them: no key is left."""
    for job in await jobs_of(app):
        found = KEY.fullmatch(job.key or "")
        assert found is not None
        seen[found[1], datetime.fromisoformat(found[2])].add(f"{job.id} {job.created_at}")
    await finish_all(app)
    await app.engine.prune(keep=0)


async def finished(app: headrace.App, clock: Clock, left: list[CronDispatcher]) -> None:
    """Let one dispatcher that nothing happens to do what the others have left."""
    last = CronDispatcher(app)
    await settled(last)
    await last.stop()
    for each in left:
        await each.stop()
