"""Numbers, spans of time and states as people read them."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import TYPE_CHECKING

from headrace.model.limits.breaker import BreakerView
from headrace.model.limits.rate import RateView
from headrace.model.views import QueueView

if TYPE_CHECKING:
    from headrace.api_types.responses import ScheduleView

# From so many seconds on a schedule is called late.
LATE = 60.0


def span(seconds: float) -> str:
    """A span of time in at most two units: "340 ms", "2.5 s", "3 min 20 s", "2 d 4 h"."""
    seconds = max(seconds, 0.0)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for size, unit, smaller, name in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{whole} s"


def plural(count: int, noun: str) -> str:
    """ "1 job", "2,000 jobs"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def clock_time(moment: datetime, now: datetime) -> str:
    """A moment in UTC: "14:05 UTC", with the date if that is not today's."""
    form = "%H:%M UTC" if moment.date() == now.date() else "%Y-%m-%d %H:%M UTC"
    return moment.strftime(form)


def paused_words(queue: QueueView, now: datetime) -> str:
    """E.g. "is paused by ada since 14:05 UTC until 15:00 UTC: provider is down"; "" if it is not,
    or if nothing else is known.
    """
    if queue.paused_at is None:
        return ""
    by = f" by {queue.paused_by}" if queue.paused_by else ""
    end = "" if queue.paused_until is None else f" until {clock_time(queue.paused_until, now)}"
    why = f": {queue.paused_reason}" if queue.paused_reason else ""
    return f"is paused{by} since {clock_time(queue.paused_at, now)}{end}{why}"


def held_words(rate: RateView) -> str:
    """E.g. "held until 2030-01-31 14:05:07 UTC by ada: they asked us to"; "" if it is not."""
    if rate.held_until is None:
        return ""
    by = f" by {rate.held_by}" if rate.held_by else ""
    why = f": {rate.held_reason}" if rate.held_reason else ""
    return f"held until {rate.held_until:%Y-%m-%d %H:%M:%S} UTC{by}{why}"


def close_command(breaker: BreakerView) -> str:
    """The line for the shell that closes a breaker. A lane may be named by whoever enqueues."""
    return shlex.join(["headrace", "breakers", "close", breaker.queue, breaker.lane])


def schedule_state(found: ScheduleView) -> str:
    """Whether it fires: enabled, disabled, late, or declared and not stored yet."""
    if not found.stored:
        return "declared"
    if not found.enabled:
        return "disabled"
    return "late" if found.late_seconds > LATE else "enabled"
