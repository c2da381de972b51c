"""Schedules in a test: those in code fire while the clock is advanced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from headrace import App, Clock, Status
from headrace.testing import enqueued, override, run

START = datetime(2100, 3, 1, 12, 0, 30, tzinfo=UTC).timestamp()
ran: list[str] = []
program = App("sqlite:////nowhere/at/all/production.db")


@program.schedule("0 * * * *", params={"what": "hourly"})
@program.task
async def note(what: str) -> None:
    ran.append(what)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    ran.clear()
    clock = Clock()
    clock.advance(START - clock.now())
    async with override(program, clock=clock) as app:
        yield app


async def test_a_declared_schedule_fires_as_often_as_its_times_come(app: App) -> None:
    assert await run(app) == []
    jobs = await run(app, advance=3 * 3600)
    assert [job.run_at.strftime("%H:%M") for job in jobs] == ["13:00", "14:00", "15:00"]
    assert {(job.source, job.status) for job in jobs} == {("cron", Status.COMPLETED)}
    assert ran == ["hourly"] * 3
    # The clock is told only once: the times that have passed do not come again.
    assert await run(app) == []
    assert len(await run(app, advance=3600)) == 1


async def test_times_come_in_order_with_what_is_due_otherwise(app: App) -> None:
    await note.options(delay=5400).enqueue("delayed")
    await run(app, advance=2 * 3600)
    assert ran == ["hourly", "delayed", "hourly"]


async def test_one_that_was_added_in_the_test_fires_too(app: App) -> None:
    await app.put_schedule("half", "30 * * * *", "note", params={"what": "half past"})
    await run(app, advance=3600)
    assert ran == ["half past", "hourly"]
    await app.enable_schedule("note", False)
    await run(app, advance=3600)
    assert ran == ["half past", "hourly", "half past"]


async def test_schedules_can_be_left_alone(app: App) -> None:
    assert await run(app, advance=86_400, schedules=False) == []
    assert await enqueued(app) == []


async def test_what_a_test_declares_is_forgotten_after_it() -> None:
    async with override(program) as app:

        @app.schedule("@daily")
        @app.task("only.here")
        async def only_here() -> None: ...

    assert set(program.schedules.declared) == {"note"}
