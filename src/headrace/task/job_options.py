"""Checks of what people say of a single job, or of the rate of a task, and the fields of the job
that follow from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.insert_policy import InsertPolicy, OnDuplicate
from headrace.model.job import NewJob, Source
from headrace.model.limits.breaker import Breaker, as_breaker
from headrace.model.limits.lane import WIDTH_LIMIT, Lane
from headrace.model.limits.rate import LARGEST_COST, Rate
from headrace.model.policy import TaskPolicy, check_expires
from headrace.model.times import check_moment, is_number

MOST_RETRIES = 10_000
# The template of a lane that is to be named like its task.
OWN_LANE = "task:"
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


def lane_for(
    lane: Lane | None,
    rate: str | Rate | None,
    burst: int | None,
    cost: float | str | None,
    count_retries: bool | None,
    *,
    breaker: Breaker | None = None,
) -> Lane | None:
    """Return the lane of a task: the one that it names, or one of its own for its rate and its
    breaker.
    """
    as_breaker(breaker, "a task")
    if rate is None:
        for name, value in (("burst", burst), ("cost", cost), ("count_retries", count_retries)):
            if value is not None:
                raise InvalidSetting(f'{name} needs rate=, such as rate="10/m", got {value!r}')
        if breaker is None:
            return lane
    if lane is not None:
        counted = f"rate={rate!r}" if rate is not None else "breaker=…"
        raise InvalidSetting(
            f"{counted} and lane={lane.template!r}: a job is counted by its lane; write "
            f"lane=headrace.Lane({lane.template!r}, {counted}) for "
            f"a {'rate' if rate is not None else 'breaker'} of each lane"
        )
    return Lane(
        OWN_LANE,
        width=WIDTH_LIMIT,
        on_retry="yield",
        rate=rate,
        burst=burst,
        cost=1.0 if cost is None else cost,
        count_retries=True if count_retries is None else count_retries,
        breaker=breaker,
    )


def with_own_lane(policy: TaskPolicy, task: str) -> TaskPolicy:
    """Return the policy of a task; a lane of its own has the name of the task."""
    lane = policy.lane
    if lane is None or lane.template != OWN_LANE:
        return policy
    return msgspec.structs.replace(
        policy, lane=msgspec.structs.replace(lane, template=f"{OWN_LANE}{task}")
    )


def check_lane_of_job(task: str, lane: Lane, own: Lane | None) -> None:
    """Refuse a breaker that only a job brings: workers know those of tasks."""
    if own is None or own.breaker is None:
        raise InvalidSetting(
            f'task "{task}" has no breaker, so workers would not look at that of lane '
            f"{lane.template!r}; give it to the task: @app.task(lane=headrace.Lane(…, breaker=…))"
        )


def check_lane_arguments(task: str, lane: Lane, names: Collection[str]) -> None:
    """Refuse a lane, or a cost, that reads what is no argument of the task."""
    takes = f"but the handler takes {', '.join(names) or 'no arguments'}"
    if unknown := sorted(lane.fields() - set(names)):
        raise InvalidSetting(f'task "{task}": lane {lane.template!r} reads {unknown}, {takes}')
    if unread := lane.cost_fields() - set(names):
        raise InvalidSetting(f'task "{task}": cost reads {min(unread)!r}, {takes}')


def set_rate(
    job: NewJob, lane: Lane, arguments: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Give a job the rate of its lane, and its cost."""
    job.rate = lane.starts
    job.count_retries = lane.count_retries
    if not isinstance(lane.cost, str):
        job.cost = lane.cost
        return
    cost = arguments.get(lane.cost, defaults.get(lane.cost))
    if not is_number(cost) or not 0 < cost <= LARGEST_COST:
        raise InvalidArguments(
            f'task "{job.task}": the cost {lane.cost!r} must be a number of starts, more than 0 '
            f"and at most {LARGEST_COST:,.0f}, got {cost!r}"
        )
    job.cost = float(cost)
