"""Circuit breakers: after so many failures in a time nothing more of a lane is started for a while.

`Breaker` is what people say. The others are what is kept, and what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from headrace.errors import InvalidSetting, RetryLater
from headrace.model.limits.rate import CLOCK_STEP_SECONDS
from headrace.model.times import is_number

MOST_FAILURES = 1_000
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 7 * 86_400.0
LONGEST_WITHIN = 7 * 86_400.0

Ignored = tuple[type[BaseException] | str, ...]


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """After `failures` failed attempts `within` so many seconds, over all machines, nothing more is
    started for `pause` seconds. Then one job is tried: if it completes everything goes on, if it
    fails there is another pause.

    `ignore` holds classes of exceptions, or their names, that are no failures. `RetryLater` and
    `RateLimited` are none either, unless `count_retry_later` is True.
    """

    failures: int
    within: float
    pause: float
    ignore: Ignored = ()
    count_retry_later: bool = False

    def __post_init__(self) -> None:
        if (
            not isinstance(self.failures, int)
            or isinstance(self.failures, bool)
            or not 1 <= self.failures <= MOST_FAILURES
        ):
            raise InvalidSetting(
                f"breaker failures must be a whole number from 1 to {MOST_FAILURES:,}, got "
                f"{self.failures!r}"
            )
        if not is_number(self.within) or not 0 < self.within <= LONGEST_WITHIN:
            raise InvalidSetting(
                f"breaker within must be more than 0 and at most {LONGEST_WITHIN:,.0f} seconds, "
                f"got {self.within!r}"
            )
        if not is_number(self.pause) or not SHORTEST_PAUSE <= self.pause <= LONGEST_PAUSE:
            raise InvalidSetting(
                f"breaker pause must be between {SHORTEST_PAUSE:g} and {LONGEST_PAUSE:,.0f} "
                f"seconds, got {self.pause!r}"
            )
        if not isinstance(self.ignore, tuple) or not all(map(_is_error, self.ignore)):
            raise InvalidSetting(
                "breaker ignore must be a tuple of exception classes, or of their names, got "
                f"{self.ignore!r}; write ignore=(ValueError,)"
            )
        if not isinstance(self.count_retry_later, bool):
            raise InvalidSetting(
                f"breaker count_retry_later must be True or False, got {self.count_retry_later!r}"
            )

    def counts(self, error: BaseException) -> bool:
        """Return whether an error that a handler has raised is a failure."""
        if isinstance(error, RetryLater) and not self.count_retry_later:
            return False
        names = {cls.__name__ for cls in type(error).__mro__}
        return not any(
            each in names if isinstance(each, str) else isinstance(error, each)
            for each in self.ignore
        )


def _is_error(item: object) -> bool:
    if isinstance(item, str):
        return item.isidentifier()
    return isinstance(item, type) and issubclass(item, BaseException)


def as_breaker(breaker: Breaker | None, of: str) -> Breaker | None:
    """Return a breaker as it is; refuse what is none."""
    if breaker is not None and not isinstance(breaker, Breaker):
        raise InvalidSetting(
            f"breaker of {of} must be a headrace.Breaker, got {breaker!r}; write "
            "breaker=headrace.Breaker(failures=20, within=60, pause=30)"
        )
    return breaker


class FailureTimes(msgspec.Struct, frozen=True):
    """When attempts of a lane have failed, by the engine's clock, the oldest first."""

    within: float
    times: tuple[float, ...] = ()

    def adding(self, breaker: Breaker, times: Iterable[float], now: float) -> FailureTimes:
        """Return these with more, as far as they matter to a breaker now."""
        # What is ahead was counted before the clock went back: nobody knows how long ago.
        ahead = now + CLOCK_STEP_SECONDS
        found = (*self.times, *times)
        fresh = sorted(each for each in found if now - breaker.within < each <= ahead)
        return FailureTimes(breaker.within, tuple(fresh[-breaker.failures :]))

    def over(self, now: float) -> bool:
        """Return whether none of them matters any more."""
        ahead = now + CLOCK_STEP_SECONDS
        return all(each <= now - self.within or each > ahead for each in self.times)


class BreakerView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An open breaker. `failures` of task `task` within `within` seconds have opened it, the last
    of them an `error`; or somebody did by hand (`by`). Nothing is started before `until`; then one
    job is tried, `trial` while it runs. `trials` have proved nothing good so far. After each there
    is a pause of `pause` seconds.
    """

    queue: str
    lane: str
    phase: Literal["open", "trial"] = "open"
    since: datetime
    until: datetime
    pause: float
    task: str | None = None
    failures: int = 0
    within: float = 0.0
    error: str | None = None
    by: str | None = None
    reason: str | None = None
    trials: int = 0
    trial: str | None = None

    @property
    def cause(self) -> str:
        """What has opened it, e.g. "20 failures within 60 s, the last a ConnectionError"."""
        if self.task is None:
            why = "" if self.reason is None else f": {self.reason}"
            return f"opened by hand{'' if self.by is None else f' by {self.by}'}{why}"
        noun = "failure" if self.failures == 1 else "failures"
        last = "" if self.error is None else f", the last {_with_article(self.error)}"
        return f"{self.failures} {noun} within {self.within:g} s{last}"


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
