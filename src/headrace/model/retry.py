"""Whether an error is tried again, and how long to wait before: for jobs and for stages."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec

from headrace.errors import InvalidSetting, NotRetryable, RetryLater
from headrace.model.times import is_number

# A back-off that doubles for ever would overflow what engines can store.
LONGEST_DELAY = 30 * 86_400.0

NeverRetry = tuple[type[BaseException] | str, ...]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Up to `retries` further attempts, after `base * factor**n` seconds each.

    The defaults wait 5, 10 and 20 s. `jitter` 0.1 spreads each delay by up to 10% either way.
    """

    retries: int = 3
    base: float = 5.0
    factor: float = 2.0
    maximum: float = LONGEST_DELAY
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not is_number(self.retries) or not isinstance(self.retries, int) or self.retries < 0:
            raise InvalidSetting(f"retries must be a whole number from 0, got {self.retries!r}")
        for field in ("base", "factor", "maximum", "jitter"):
            if not is_number(value := getattr(self, field)):
                raise InvalidSetting(f"{field} must be a number, got {value!r}")
        # Told by what must hold, since nothing holds of what is not a number.
        if not (0 <= self.base < math.inf and 1 <= self.factor < math.inf):
            raise InvalidSetting(
                f"a retry delay needs base >= 0 and factor >= 1, got {self.base} "
                f"and {self.factor}; choose finite numbers"
            )
        if not self.maximum >= 0:
            raise InvalidSetting(f"maximum must be 0 or more seconds, got {self.maximum}")
        if not 0 <= self.jitter <= 1:
            raise InvalidSetting(f"jitter must be between 0 and 1, got {self.jitter}")

    @property
    def max_attempts(self) -> int:
        """The first try and the retries."""
        return self.retries + 1

    def delay(self, attempt: int, chance: Callable[[], float] = random.random) -> float:
        """Seconds to wait after attempt number `attempt` (the first is 1) failed."""
        try:
            grown = self.base * self.factor ** min(max(attempt - 1, 0), 64)
        except OverflowError:
            grown = LONGEST_DELAY
        delay = min(grown, self.maximum, LONGEST_DELAY)
        return delay * (1 + self.jitter * (2 * chance() - 1)) if self.jitter else delay


def delay_after(
    error: BaseException,
    policy: RetryPolicy,
    attempt: int,
    *,
    never_retry: NeverRetry = (),
    now: float = 0.0,
) -> float | None:
    """Return the seconds to wait after `error` ended attempt number `attempt`; None: not again.

    What the error itself asks for counts first: `now` is what `RetryLater(at=…)` counts from. How
    many attempts there are is for the caller to know.
    """
    if isinstance(error, RetryLater):
        if error.at is not None:
            return bounded_delay(error.at.timestamp() - now)
        if error.delay is not None:
            return bounded_delay(error.delay)
    elif not retryable(error, never_retry):
        return None
    return policy.delay(attempt)


def bounded_delay(seconds: float) -> float:
    """Return a delay that engines can store."""
    return 0.0 if math.isnan(seconds) else min(max(float(seconds), 0.0), LONGEST_DELAY)


def retryable(error: BaseException, never: NeverRetry = ()) -> bool:
    """Whether a further attempt may help. `never` holds classes, or names of classes.

    Names are matched against the whole ancestry, so that a task need not import what it names.
    """
    if isinstance(error, NotRetryable):
        return False
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & _NEVER_NAMES:
        return False
    return not any(
        (item in names) if isinstance(item, str) else isinstance(error, item) for item in never
    )


BUGS: tuple[type[Exception], ...] = (AttributeError, NameError, NotImplementedError, TypeError)
"""Errors of a program that is wrong, whatever it works on: for `never_retry=headrace.BUGS`.

Classes derived from them count too, such as `UnboundLocalError`. `ImportError` is not among them
(another worker may have the module), nor are `KeyError`, `IndexError`, `ValueError` and
`AssertionError`: what they complain of may be data that is different next time.
"""

# Teams have errors of their own by these names; they mean the same as ours.
_NEVER_NAMES = {"ParserError", "ValidationError", "AuthenticationError"}
