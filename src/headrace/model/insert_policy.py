"""What a new job does to others that have its key, or its lane."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.times import is_number

OnDuplicate = Literal["return", "replace", "debounce"]
WhenFull = Literal["wait", "refuse", "replace", "cancel_running"]
ON_DUPLICATE: tuple[OnDuplicate, ...] = get_args(OnDuplicate)
WHEN_FULL: tuple[WhenFull, ...] = get_args(WhenFull)

EXPIRED = "expired: not started in time"
"""The reason of a job that was cancelled because it had not started in time."""

LONGEST = 366 * 86_400.0


def replaced_by(job_id: str) -> str:
    """Return the reason of a job that was cancelled because a newer one came in its place."""
    return f"replaced by job {job_id}"


class InsertPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a new job is stored where its key exists, or its lane is full.

    * `on_duplicate="return"`: the job that has the key counts, and nothing is stored. With `window`
      only if that was stored less than so many seconds ago.
    * `"replace"`: a job with the key that has not started is cancelled for the new one.
    * `"debounce"`: a job with the key that has not started gets the arguments of the new one, and
      is due when the new one would be, at most `max_wait` seconds after it was stored.

    `when_full` says what happens if no place of the lane is free for it: it waits, is refused,
    takes the place of those that wait, or of all others, those that run included.
    """

    on_duplicate: OnDuplicate = "return"
    window: float | None = None
    max_wait: float | None = None
    when_full: WhenFull = "wait"

    def __post_init__(self) -> None:
        if self.on_duplicate not in ON_DUPLICATE:
            raise InvalidSetting(
                f"on_duplicate must be one of {', '.join(ON_DUPLICATE)}, got {self.on_duplicate!r}"
            )
        check_when_full(self.when_full)
        _check_seconds("window", self.window)
        _check_seconds("max_wait", self.max_wait)
        if self.window is not None and self.on_duplicate != "return":
            raise InvalidSetting(
                f'window needs on_duplicate="return", got {self.on_duplicate!r}: the others make '
                "a new job as soon as the last one has started"
            )
        if self.max_wait is not None and self.on_duplicate != "debounce":
            raise InvalidSetting(
                f'max_wait needs on_duplicate="debounce", got {self.on_duplicate!r}'
            )
        if self.on_duplicate != "return" and self.when_full != "wait":
            raise InvalidSetting(
                f"on_duplicate={self.on_duplicate!r} and when_full={self.when_full!r} both say "
                "which job gives way: use one of them"
            )

    @property
    def about_key(self) -> bool:
        """Whether it says more of a key than that it makes a job idempotent."""
        return self.on_duplicate != "return" or self.window is not None


def check_when_full(when_full: object) -> None:
    """Raise `InvalidSetting` for what is no such policy."""
    if when_full not in WHEN_FULL:
        raise InvalidSetting(f"when_full must be one of {', '.join(WHEN_FULL)}, got {when_full!r}")


def _check_seconds(name: str, value: float | None) -> None:
    if value is not None and (not is_number(value) or not 0 < value <= LONGEST):
        raise InvalidSetting(
            f"{name} must be more than 0 and at most {LONGEST:.0f} seconds, got {value!r}"
        )
