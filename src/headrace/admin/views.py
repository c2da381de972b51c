"""Schedules of an engine, in the shape that a server returns."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.api_types.responses import (
    ScheduleTime,
    ScheduleTimes,
    ScheduleView,
)
from headrace.dispatchers.cron import views
from headrace.dispatchers.cron.schedules import Schedules
from headrace.model.schedule import Schedule

SHOWN_RUNS = 10


async def schedule_views(schedules: Schedules, now: datetime) -> list[ScheduleView]:
    """Return every schedule, by name."""
    return msgspec.convert(
        await views.views(schedules, now), list[ScheduleView], from_attributes=True
    )


async def schedule_view(schedules: Schedules, name: str, now: datetime) -> ScheduleView:
    """Return one schedule with its last runs."""
    found = await views.view(schedules, name, now, runs=SHOWN_RUNS)
    return msgspec.convert(found, ScheduleView, from_attributes=True)


def schedule_times(schedule: Schedule, now: datetime, count: int) -> ScheduleTimes:
    """Return the next times of a schedule, stored or not."""
    return ScheduleTimes(
        expression=schedule.expression,
        words=schedule.cron.words,
        tz=schedule.tz,
        next=[ScheduleTime(**each) for each in views.next_times(schedule, now, count)],
    )
