"""Checks of what people say of a single job, and the fields of the job that follow from it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.insert_policy import InsertPolicy, OnDuplicate
from headrace.model.job import Source
from headrace.model.lane import Lane
from headrace.model.policy import check_expires
from headrace.model.times import check_moment, is_number

MOST_RETRIES = 10_000
# What most calls say of expiry and of a key that exists.
NOT_GIVEN = (msgspec.UNSET, None, None, None)


class OptionFields(TypedDict, total=False):
    """The options of `task.options`, without `files`."""

    queue: str | None
    priority: int | None
    delay: float | None
    run_at: datetime | None
    key: str | None
    lane: str | Lane | None
    retries: int | None
    timeout: float | msgspec.UnsetType | None
    expires: float | datetime | msgspec.UnsetType | None
    on_duplicate: OnDuplicate | None
    window: float | None
    max_wait: float | None
    source: Source
    meta: dict[str, Any] | None
    conn: Any


def attempts_of(retries: int) -> int:
    """Return how often a job is tried that is retried so often."""
    if not is_number(retries) or not 0 <= retries <= MOST_RETRIES:
        raise InvalidSetting(f"retries must be between 0 and {MOST_RETRIES}, got {retries!r}")
    return retries + 1


def expiry_fields(expires: Any) -> dict[str, float | None]:
    """The fields of a job for a number of seconds, a time, or None for no limit."""
    if expires is msgspec.UNSET:
        return {}
    if isinstance(expires, datetime):
        return {"expires_in": None, "expires_at": check_moment(expires, "expires")}
    return {"expires_in": check_expires(expires)}


def key_policy_fields(
    key: str | None,
    delay: float | None,
    on_duplicate: OnDuplicate | None,
    window: float | None,
    max_wait: float | None,
) -> dict[str, InsertPolicy]:
    """The fields of a job for what is said of a key that exists."""
    if on_duplicate in (None, "return") and window is None and max_wait is None:
        return {}
    if key is None:
        raise InvalidSetting(
            "on_duplicate, window and max_wait are about the key of a job; give key= as well"
        )
    policy = InsertPolicy(on_duplicate=on_duplicate or "return", window=window, max_wait=max_wait)
    if policy.on_duplicate == "debounce" and not delay:
        raise InvalidSetting(
            'on_duplicate="debounce" needs delay=, the seconds that have to pass without a further '
            "call"
        )
    return {"policy": policy}
