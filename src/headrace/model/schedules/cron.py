"""Cron expressions: what they mean on a wall clock, and when that is in a time zone.

Two kinds, as in Debian's cron, and each is right when the clocks change:

* A time of day (`30 2 * * *`) fires once on each of its days. Where the clocks jump over it, it
  fires at the first moment after the jump; where they show it twice, the first time.
* A rhythm (the minute or the hour begins with `*`) fires whenever the clock shows it: nothing in a
  jump, and twice where the clocks show an hour twice, so that `*/5 * * * *` stays every 5 minutes.
"""

from __future__ import annotations

import functools
import itertools
import re
import zoneinfo
from collections import deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from headrace.errors import InvalidSetting
from headrace.suggest import nearest

LEAST_INTERVAL = 60.0
"""The fewest seconds between two times of an expression, unless a dispatcher's settings say so."""
LONGEST = 200
DAY = 86_400
SECOND = timedelta(seconds=1)
REMEDY = 'write five fields: minute hour day month weekday, such as "*/5 * * * *"'

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = (
    ("second", 60),
    ("minute", 60),
    ("hour", 24),
    ("day-of-month", 31),
    ("month", 12),
    ("day-of-week", 8),
)
# Weekdays and leap years repeat after 28 years (until 2100), so this is all that can ever happen.
_CALENDAR = (date(2024, 1, 1), date(2052, 1, 1))


@functools.lru_cache(maxsize=4_096)
def parse_cron(text: str) -> Cron:
    """Read an expression, or say what is wrong with it."""
    return Cron(text)


class Cron:
    """A valid expression that fires at some time."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            raise InvalidSetting(f"cron expression {str(text)[:60]!r} is not valid; {REMEDY}")
        self.text = " ".join(text.split())
        self.fields = _MACROS.get(self.text.lower(), self.text)
        self._parsed = _parse(self.fields, self.text)
        if next(self._walls(datetime(2024, 1, 1)), None) is None:
            raise InvalidSetting(f'cron expression "{self.text}" never fires: no day matches it')
        # The second, minute and hour; none of them a rhythm.
        self.time_of_day = not any(part.startswith("*") for part in self._parsed.parts[:3])

    def __repr__(self) -> str:
        return f"Cron({self.text!r})"

    @property
    def words(self) -> str:
        """What it means, for people: "every 5 minutes", "at 03:00 every day"."""
        if steps := re.fullmatch(r"(\*|\*/(\d+)) \* \* \* \*", self.fields):
            return _every("minute", steps[2], 60) or self._explained
        if steps := re.fullmatch(r"0 (\*|\*/(\d+)) \* \* \*", self.fields):
            return _every("hour", steps[2], 24) or self._explained
        if steps := re.fullmatch(r"(\*|\*/(\d+)) \* \* \* \* \*", self.fields):
            return _every("second", steps[2], 60) or self._explained
        return self._explained

    @property
    def _explained(self) -> str:
        text = CronSim(self.fields, datetime(2024, 1, 1)).explain()
        return text[:1].lower() + text[1:]

    def check_interval(self, least: float) -> None:
        """Refuse an expression that fires more often than every `least` seconds."""
        shortest = self.shortest_interval(least)
        if shortest < least:
            raise InvalidSetting(
                f'cron expression "{self.text}" fires {shortest:g} s apart, more often than the '
                f"{least:g} s that dispatcher.min_cron_interval_seconds allows; choose times that "
                "lie further apart, or lower that setting"
            )

    def shortest_interval(self, enough: float = float("inf")) -> float:
        """The fewest seconds between two of its times on a wall clock, in all years to come.

        With `enough` the search ends when it is sure that there are no fewer than that.
        """
        parsed = self._parsed
        times = sorted(
            hour * 3600 + minute * 60 + second
            for hour, minute, second in itertools.product(
                parsed.hours, parsed.minutes, parsed.seconds
            )
        )
        within = min((b - a for a, b in itertools.pairwise(times)), default=DAY * DAY)
        overnight = DAY - times[-1] + times[0]
        if overnight >= min(within, enough):
            return min(within, overnight)
        # Only here does it matter which days there are, and how far apart.
        days = self._days()
        apart = min((b - a for a, b in itertools.pairwise(days)), default=DAY)
        return min(within, (apart - 1) * DAY + overnight)

    def times(self, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Its times after a moment, in UTC, in order. Where one starts makes no difference."""
        moments = self._times_of_day if self.time_of_day else self._rhythm
        # All of them are whole seconds, so a fraction changes nothing.
        return moments(after.astimezone(UTC).replace(microsecond=0), zone)

    def latest(self, after: datetime, until: datetime, zone: ZoneInfo) -> datetime | None:
        """The last of its times after one moment and not after another."""
        after, until = after.astimezone(UTC), until.astimezone(UTC)
        span = timedelta(hours=1)
        while after < until:
            start = max(after, until - span)
            due = itertools.takewhile(lambda each: each <= until, self.times(start, zone))
            last = deque(due, maxlen=1)
            if last or start == after:
                return last[0] if last else None
            span *= 4
        return None

    def _times_of_day(self, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        last = after
        for wall in self._walls(_wall(after, zone)):
            moment = _first_moment(wall, zone)
            # Of several that the clocks jump over, and of what they show again, only the first.
            if moment > last:
                last = moment
                yield moment

    def _rhythm(self, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """While the zone keeps its offset, a wall clock is UTC moved by it."""
        start, wall = after, _wall(after, zone)
        while True:
            offset = _offset(start, zone)
            change = None
            for shown in self._walls(wall):
                moment = (shown - offset).replace(tzinfo=UTC)
                change = _change(zone, start, moment)
                if change is not None:
                    break
                yield moment
                start = moment
            if change is None:
                return
            start, wall = change, _wall(change, zone) - SECOND

    def _walls(self, after: datetime) -> Iterator[datetime]:
        """What a wall clock shows at its times; it knows nothing of zones."""
        return CronSim(self.fields, after)

    def _days(self) -> list[int]:
        parsed = self._parsed
        first, end = (day.toordinal() for day in _CALENDAR)
        days = (date.fromordinal(number) for number in range(first, end))
        return [
            day.toordinal() for day in days if day.month in parsed.months and parsed.match_day(day)
        ]


def find_zone(name: str) -> ZoneInfo:
    """The time zone of this name, or an error that names the nearest ones."""
    try:
        return ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        known = zoneinfo.available_timezones()
    if not known:
        raise InvalidSetting(
            f"time zone {name!r} is not known, nor is any other: install the package tzdata"
        )
    folded = {each.lower(): each for each in known}
    wanted = str(name)[:100].lower().replace(" ", "_")
    near = nearest(wanted, folded, count=3)
    # "Seoul" means a city, whatever continent it is on.
    near = [each for each in folded if each.endswith(f"/{wanted}")] or near
    shown = ", ".join(f'"{folded[each]}"' for each in near[:3])
    hint = f"did you mean {shown}?" if near else 'use a name such as "UTC" or "Asia/Seoul"'
    raise InvalidSetting(f"time zone {str(name)[:100]!r} is not known; {hint}")


def _parse(fields: str, text: str) -> CronSim:
    parts = fields.upper().split()
    named = list(zip(_FIELDS[-len(parts) :], parts, strict=False))
    for (field, size), part in named if len(parts) in (5, 6) else ():
        for step in re.findall(r"/(\d+)", part):
            if int(step) > size:
                raise InvalidSetting(
                    f'cron expression "{text}": the step {step} in the {field} field "{part}" is '
                    f"larger than the field, which has {size} values, so it would not do what it "
                    f"says; {REMEDY}"
                )
    try:
        return CronSim(fields, datetime(2024, 1, 1))
    except (CronSimError, AssertionError, ValueError, TypeError, KeyError) as error:
        reason = str(error).lower() or "it cannot be read"
        for (field, _), part in named:
            if reason == f"bad {field}":
                reason = f'bad {field} "{part}"'
        if reason == "wrong number of fields":
            reason = f"it has {len(parts)} fields"
        raise InvalidSetting(f'cron expression "{text}" is not valid: {reason}; {REMEDY}') from None


def _every(unit: str, step: str | None, size: int) -> str | None:
    """ "every 5 minutes", if that is what it does: 45 does not go into an hour."""
    count = int(step or 1)
    if count == 1:
        return f"every {unit}"
    return f"every {count} {unit}s" if count and size % count == 0 and count < size else None


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """What a wall clock shows."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _first_moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """When a wall clock shows this for the first time, or jumps over it."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if _wall(moment, zone) == wall:
        return moment
    # In a jump the two readings of a time lie on both sides of it.
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _change(zone, before, moment) or moment


def _change(zone: ZoneInfo, start: datetime, end: datetime) -> datetime | None:
    """The first moment after `start`, and not after `end`, with another offset than `start`."""
    offset = _offset(start, zone)
    while start < end:
        # No zone changes twice within a day.
        step = min(start + timedelta(days=1), end)
        if _offset(step, zone) != offset:
            while step - start > SECOND:
                middle = start + timedelta(seconds=(step - start) // SECOND // 2 or 1)
                if _offset(middle, zone) == offset:
                    start = middle
                else:
                    step = middle
            return step
        start = step
    return None
