"""Times that every store can keep and everybody can read: others are refused, and bent
to the nearest one below it.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from numbers import Real
from typing import Any

from headrace.errors import InvalidInput, InvalidSetting

EARLIEST = 0.0
"""1970-01-01T00:00:00Z, in seconds since the epoch."""

LATEST = 253_370_764_800.0
"""9999-01-01T00:00:00Z. The last year that a datetime has is left over, for time zones: a moment
in it may lie beyond the end where somebody else reads it."""

LONGEST_WAIT = 10 * 365 * 86_400.0
"""How far ahead a delay may reach, in seconds."""

LONGEST_KEPT = 100 * 365 * 86_400.0
"""After this many seconds a job has for all purposes been put off for ever."""

_FIRST, _LAST = datetime.fromtimestamp(EARLIEST, UTC), datetime.fromtimestamp(LATEST, UTC)
_SHOWN = 60
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|w)?")
_SECONDS = {
    None: 1.0,
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}


def is_number(value: object) -> bool:
    """Whether a value is a number that can be compared; a boolean is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_delay(delay: Any, name: str = "delay") -> float:
    """Seconds from now, if a job can be put off for so long."""
    if not is_number(delay):
        raise InvalidSetting(
            f"{name} must be a number of seconds, got {shown(delay)} "
            f"({type(delay).__name__}); give seconds, such as 90 or timedelta(…).total_seconds()"
        )
    try:
        seconds = float(delay)
    except OverflowError:
        seconds = math.inf
    if not 0 <= seconds <= LONGEST_WAIT:
        raise InvalidSetting(
            f"{name} must be between 0 and {LONGEST_WAIT:.0f} seconds, got {shown(delay)}; "
            "choose a time within ten years"
        )
    return seconds


def check_aware(moment: Any, name: str) -> datetime:
    """A moment, if it has a time zone: one without is not guessed at."""
    if not isinstance(moment, datetime):
        raise InvalidSetting(
            f"{name} must be a datetime, got {shown(moment)} ({type(moment).__name__}); "
            "give an aware one, such as datetime(2030, 1, 31, tzinfo=UTC)"
        )
    if moment.utcoffset() is None:
        raise InvalidSetting(f"{name} {moment.isoformat()} has no time zone; use an aware datetime")
    return moment


def check_moment(moment: Any, name: str = "run_at") -> float:
    """A moment as seconds since the epoch, if it has a time zone and every store can keep it."""
    seconds = check_aware(moment, name).timestamp()
    if not EARLIEST <= seconds <= LATEST:
        raise InvalidSetting(
            f"{name} must lie in the years from 1970 to 9998 (UTC), got {moment.isoformat()}; "
            "choose a time within them"
        )
    return seconds


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC. One a few hours beyond the first or the last year that there is
    becomes the first or the last moment.
    """
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return (datetime.min if moment.year == 1 else datetime.max).replace(tzinfo=UTC)


def moment_of(seconds: float) -> datetime:
    """Seconds since the epoch as an aware datetime, the nearest that every reader can show."""
    return datetime.fromtimestamp(seconds, UTC) if EARLIEST <= seconds <= LATEST else _bent(seconds)


def kept_time(seconds: float) -> float:
    """The nearest time that every store can keep. What is not a number is due at once."""
    return min(max(EARLIEST, seconds), LATEST)


def kept_delay(seconds: float) -> float:
    """The nearest delay that every store can keep. What is not a number is none."""
    return min(max(0.0, seconds), LONGEST_KEPT)


def shown(value: object) -> str:
    """A value short enough for a message. Python refuses to write very large numbers out."""
    try:
        text = repr(value)
    except ValueError:
        return "a number that is too large to be shown"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _bent(seconds: float) -> datetime:
    return _LAST if seconds > LATEST else _FIRST


def is_span(text: str) -> bool:
    """Whether a text is a span of time, such as 10m."""
    return _SPAN.fullmatch(text.strip().lower()) is not None


def parse_span(name: str, text: str) -> float:
    """Seconds in "90", "1.5h", "10m" or "7d"."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidInput(
            f"{name} {text!r} is not a span of time; write seconds (90), or 500ms, 30s, 10m, 2h, 7d"
        )
    return float(found[1]) * _SECONDS[found[2]]
