"""When schedules fire, worked out in another way: every minute of the time is looked at.

It shares nothing with the code under test but the rules in its documentation.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


@lru_cache(maxsize=128)
def fired(expression: str, tz: str, start: datetime, end: datetime) -> list[datetime]:
    """The times after `start` and not after `end`."""
    fields = [_values(part, *span) for part, span in zip(expression.split(), SPANS, strict=True)]
    zone = ZoneInfo(tz)
    parts = expression.split()
    # Rarely does a test need other minutes than these, and looking at all of them takes long.
    step = MINUTE * (1 if "*" in parts[0] or any(m % 15 for m in fields[0]) else 15)
    if parts[0].startswith("*") or parts[1].startswith("*"):
        moments = _each(start, end, step)
        return [each for each in moments if _matches(fields, parts, each.astimezone(zone))]
    found = set()
    # Every reading of a wall clock, real or not, from a day before to a day after.
    wall = start.replace(tzinfo=None, minute=0, second=0, microsecond=0) - timedelta(days=1)
    while wall < end.replace(tzinfo=None) + timedelta(days=1):
        if _matches(fields, parts, wall):
            found.add(_first(wall, zone))
        wall += step
    return sorted(each for each in found if start < each <= end)


def _each(start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    first = start.replace(minute=0, second=0, microsecond=0)
    count = int((end - first) / step) + 1
    moments = (first + step * number for number in range(count + 1))
    return [each for each in moments if start < each <= end]


def _first(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first minute at which a clock on the wall shows this time or a later one."""
    at = wall.replace(tzinfo=UTC) - timedelta(hours=16)
    while at.astimezone(zone).replace(tzinfo=None) < wall:
        ahead = wall - at.astimezone(zone).replace(tzinfo=None)
        # Close to it minute by minute: the clocks may be changed on the way.
        at += ahead - timedelta(hours=3) if ahead > timedelta(hours=4) else MINUTE
    return at


def _matches(fields: list[set[int]], parts: list[str], wall: datetime) -> bool:
    minutes, hours, days, months, weekdays = fields
    if wall.minute not in minutes or wall.hour not in hours or wall.month not in months:
        return False
    day, weekday = wall.day in days, wall.isoweekday() % 7 in {each % 7 for each in weekdays}
    either = not (parts[2].startswith("*") or parts[4].startswith("*"))
    return (day or weekday) if either else (day and weekday)


SPANS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def _values(part: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for term in part.split(","):
        range_, _, step = term.partition("/")
        first, _, last = range_.partition("-")
        bounds = (low, high) if range_ == "*" else (int(first), int(last or first))
        if step and "-" not in range_ and range_ != "*":
            bounds = (bounds[0], high)
        found |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
    return found
