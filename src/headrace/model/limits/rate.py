"""Rates: at most so many starts in a time, for a lane or a queue."""

from __future__ import annotations

import functools
import math
import re
from datetime import datetime
from typing import Any

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.times import is_number

SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
NAMES = {1.0: "second", 60.0: "minute", 3_600.0: "hour", 86_400.0: "day"}
MOST_STARTS = 1_000_000
LARGEST_BURST = 100_000
LARGEST_COST = 1_000_000.0
# The burst of a rate that names none is what this many seconds hold: a late wake-up costs no start.
LATENESS_SECONDS = 0.2
# A clock that went back by more than this is set right; by less, nobody waits for longer than this.
CLOCK_STEP_SECONDS = 1.0

_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d*)\s*([smhd])\s*\Z")
_REMEDY = 'write "100/s", "10/m", "500/h", "1000/d", or "1/5s" for one in five seconds'


class Rate(msgspec.Struct, frozen=True):
    """At most `count` starts in `per` seconds, up to `burst` of them at once.

    In any window of `n * interval` seconds at most `n + burst - 1` jobs of cost 1 start.
    """

    count: float
    per: float
    burst: int

    def __post_init__(self) -> None:
        if not is_number(self.count) or not 0 < self.count <= MOST_STARTS:
            raise InvalidSetting(
                f"rate must be more than 0 and at most {MOST_STARTS:,} starts, got {self.count!r}; "
                f"{_REMEDY}"
            )
        if not is_number(self.per) or not 0 < self.per <= 366 * 86_400:
            raise InvalidSetting(f"rate must be per 1 s to 366 days, got {self.per!r} s; {_REMEDY}")
        if (
            not isinstance(self.burst, int)
            or isinstance(self.burst, bool)
            or not 1 <= self.burst <= LARGEST_BURST
        ):
            raise InvalidSetting(
                f"burst must be a whole number from 1 to {LARGEST_BURST:,}, got {self.burst!r}; "
                "leave it out for what 0.2 s hold"
            )

    @property
    def interval(self) -> float:
        """Seconds from one start to the next."""
        return self.per / self.count

    def opens_at(self, tat: float, cost: float = 1.0) -> float:
        """Return from when on a job of this cost may start, if all before it is paid for at
        `tat`.
        """
        return tat - max(self.burst - cost, 0.0) * self.interval

    def after_start(self, tat: float, now: float, cost: float = 1.0) -> float:
        """Return when all is paid for, once such a job has started at `now`."""
        return max(tat, now) + cost * self.interval

    def after_hold(self, tat: float, until: float) -> float:
        """Return the same for a key in which nothing starts until then, and no burst follows."""
        return max(tat, until + (self.burst - 1) * self.interval)

    @property
    def words(self) -> str:
        """E.g. "10 a minute"."""
        count = _plain(self.count)
        name = NAMES.get(self.per)
        if name is not None:
            return f"{count} {'an' if name == 'hour' else 'a'} {name}"
        return f"{count} in {_plain(self.per)} s"

    @property
    def text(self) -> str:
        """As it is given, e.g. "10/m", without the burst."""
        for unit, seconds in reversed(SECONDS.items()):
            times, rest = divmod(self.per, seconds)
            if not rest:
                return f"{_plain(self.count)}/{'' if times == 1 else _plain(times)}{unit}"
        return f"{_plain(self.count / self.per)}/s"


class RateView(msgspec.Struct, kw_only=True, frozen=True):
    """What is kept of a key: the rate that counts (None: there is only a hold), whether an operator
    has set it, from when on a job of cost 1 may start, and until when nothing may. `lane` "" is the
    queue itself. Times that have passed are None.

    Engines know neither who holds a key, and why, nor how many of its jobs have not started
    (`waiting`; None: not counted). A hold without a name or a reason may be one that a job asked
    for.
    """

    queue: str
    lane: str
    rate: Rate | None
    by_operator: bool = False
    next_at: datetime | None = None
    held_until: datetime | None = None
    held_by: str | None = None
    held_reason: str | None = None
    waiting: int | None = None


def _plain(number: float) -> str:
    """A number without an exponent, which nobody could type again."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def as_rate(rate: str | Rate, burst: int | None = None) -> Rate:
    """Return the rate of a text such as "10/m", and one that is a rate as it is."""
    if isinstance(rate, Rate):
        return rate if burst is None else msgspec.structs.replace(rate, burst=burst)
    if not isinstance(rate, str):
        raise InvalidSetting(f'rate must be a text such as "10/m", got {rate!r}; {_REMEDY}')
    return _parsed(rate, burst)


@functools.lru_cache(maxsize=1_024)
def _parsed(text: str, burst: int | None) -> Rate:
    found = _WRITTEN.match(text)
    if found is None:
        raise InvalidSetting(f"rate {text!r} cannot be read; {_REMEDY}")
    count, times, unit = found.groups()
    per = SECONDS[unit] * (int(times) if times else 1)
    if burst is None and float(count) > 0 < per:
        burst = default_burst(float(count), per)
    return Rate(float(count), per, 1 if burst is None else burst)


def default_burst(count: float, per: float) -> int:
    """Return the burst of a rate that names none: what 0.2 s hold, at least 1."""
    return min(max(math.floor(LATENESS_SECONDS * count / per), 1), LARGEST_BURST)


def check_cost(cost: Any, name: str = "cost") -> float:
    """A cost is a number above 0: so many starts does the job count for."""
    if not is_number(cost) or not 0 < cost <= LARGEST_COST:
        raise InvalidSetting(
            f"{name} must be a number of starts, more than 0 and at most {LARGEST_COST:,.0f}, "
            f"got {cost!r}"
        )
    return float(cost)
