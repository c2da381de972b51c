"""Schedules and dead letters of an engine, in the shape that a server returns."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.api_types.responses import (
    DeadLetterPage,
    DeadLetterView,
    ScheduleTime,
    ScheduleTimes,
    ScheduleView,
)
from headrace.dispatchers.cron import views
from headrace.dispatchers.cron.schedules import Schedules
from headrace.dispatchers.events.dead_letters import DeadLetter, DeadLetters
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


def letter_view(letter: DeadLetter, *, raw: bytes | None = None) -> DeadLetterView:
    """Return a dead letter, with another message in it if one is given."""
    fields = msgspec.structs.asdict(letter)
    del fields["known"]
    kept_bytes = len(letter.raw)
    return DeadLetterView(
        **fields | {"raw": letter.raw if raw is None else raw}, kept_bytes=kept_bytes
    )


async def letter_page(
    letters: DeadLetters, topic: str | None, cursor: str | None, limit: int
) -> DeadLetterPage:
    """Return dead letters by id without the messages, after the cursor."""
    found: list[DeadLetterView] = []
    after = cursor or ""
    while len(found) < limit and (some := await letters.page(after=after)):
        for letter in some:
            after = letter.id
            if topic in (None, letter.topic):
                found.append(letter_view(letter, raw=b""))
            if len(found) == limit:
                break
    more = len(found) == limit and await letters.page(after=after, limit=1)
    return DeadLetterPage(found, after if more else None)
