"""Times: what no store can keep is refused on every way in."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import headrace
from headrace.client.job_codec import make_request
from headrace.config import Settings
from headrace.enqueue import stored
from headrace.errors import InvalidInput, InvalidSetting, RetryLater, Snooze
from headrace.model.job import JobFilter, NewJob
from headrace.model.retry import LONGEST_DELAY, RetryPolicy
from headrace.model.times import LATEST, in_utc, kept_delay, kept_time, moment_of

AHEAD, BEHIND = timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))

BAD_MOMENTS = [
    (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), "years from 1970 to 9998"),
    (datetime.max.replace(tzinfo=BEHIND), "years from 1970 to 9998"),
    (datetime.min.replace(tzinfo=AHEAD), "years from 1970 to 9998"),
    (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "got 1969-12-31T23:59:59"),
    (datetime(2030, 1, 1), "2030-01-01T00:00:00 has no time zone; use an aware datetime"),
    ("2030-01-01T00:00:00Z", "must be a datetime, got '2030-01-01T00:00:00Z' .str."),
    (1_900_000_000.0, "must be a datetime, got 1900000000.0 .float."),
]
BAD_DELAYS = [
    (-1, "between 0 and 315360000 seconds, got -1; choose"),
    (math.nan, "got nan"),
    (math.inf, "got inf"),
    (1e300, "got 1e.300"),
    pytest.param(10**400, "got 1000", id="huge"),
    pytest.param(10**5000, "too large to be shown", id="unspeakable"),
    (timedelta.max, "must be a number of seconds, got datetime.timedelta.*total_seconds"),
    ("60", "must be a number of seconds, got '60' .str."),
    (True, "must be a number of seconds, got True"),
]


def task_options(**options: Any) -> None:
    app = headrace.App("sqlite://")

    @app.task
    async def work() -> None: ...

    work.options(**options)


def client_options(**options: Any) -> None:
    make_request("work", {}, options)  # type: ignore[arg-type]


@pytest.mark.parametrize("door", [task_options, client_options])
@pytest.mark.parametrize(("moment", "told"), BAD_MOMENTS)
def test_a_time_that_no_store_keeps_is_refused_by_name(
    door: Callable[..., None], moment: Any, told: str
) -> None:
    with pytest.raises(InvalidSetting, match=f"run_at .*{told}|run_at {told}"):
        door(run_at=moment)


@pytest.mark.parametrize("door", [task_options, client_options])
@pytest.mark.parametrize(("delay", "told"), BAD_DELAYS)
def test_a_delay_that_no_store_keeps_is_refused_by_name(
    door: Callable[..., None], delay: Any, told: str
) -> None:
    with pytest.raises(InvalidSetting, match=f"delay .*{told}"):
        door(delay=delay)


@pytest.mark.parametrize(
    "moment",
    [datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
)
def test_the_first_and_the_last_time_are_accepted(moment: datetime) -> None:
    task_options(run_at=moment.astimezone(AHEAD))
    client_options(run_at=moment.astimezone(BEHIND) if moment.year > 1970 else moment)


@pytest.mark.parametrize("run_at", [math.inf, -math.inf, math.nan, LATEST * 2, -1.0])
def test_a_job_that_was_stored_is_told_whatever_its_time(run_at: float) -> None:
    now = datetime.now(UTC)
    assert 1970 <= stored(NewJob(id="a", task="b", run_at=run_at), now).run_at.year <= 9999
    assert stored(NewJob(id="a", task="b", delay=run_at), now).run_at >= now


def test_times_are_bent_to_the_nearest_that_can_be_kept() -> None:
    assert [kept_time(each) for each in (-1.0, math.nan, 5.0, math.inf)] == [0, 0, 5, LATEST]
    assert [kept_delay(each) for each in (-1.0, math.nan, 5.0)] == [0, 0, 5]
    assert kept_delay(math.inf) == kept_delay(10**400) == 100 * 365 * 86_400
    assert moment_of(math.nan).year == moment_of(-math.inf).year == 1970
    assert moment_of(math.inf) == moment_of(LATEST) == datetime(9999, 1, 1, tzinfo=UTC)
    assert in_utc(datetime.max.replace(tzinfo=BEHIND)) == datetime.max.replace(tzinfo=UTC)
    assert in_utc(datetime.min.replace(tzinfo=AHEAD)) == datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize("delay", ["5", timedelta(seconds=5), None, True])
def test_a_snooze_for_what_is_no_number_fails_where_it_is_raised(delay: Any) -> None:
    with pytest.raises(InvalidInput, match="delay must be a number of seconds"):
        Snooze(delay, "later")


@pytest.mark.parametrize(
    "fields", [{"delay": "5"}, {"at": datetime(2030, 1, 1)}, {"at": 5}, {"at": "tomorrow"}], ids=str
)
def test_a_retry_at_what_is_no_time_fails_where_it_is_raised(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"(delay|at) must be a (number|datetime)"):
        RetryLater("later", **fields)


def test_a_huge_whole_number_of_seconds_is_a_delay_without_end() -> None:
    assert Snooze(10**400).delay == RetryLater(delay=10**400).delay == math.inf


@pytest.mark.parametrize(
    "fields",
    [{"base": math.nan}, {"base": math.inf}, {"factor": math.inf}, {"maximum": -1}],
    ids=str,
)
def test_a_back_off_without_a_number_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        RetryPolicy(**fields)


def test_a_back_off_that_grows_out_of_all_numbers_is_the_longest() -> None:
    assert RetryPolicy(retries=99, factor=1e300).delay(64) == LONGEST_DELAY


@pytest.mark.parametrize("field", ["created_after", "created_before"])
def test_a_filter_by_a_time_without_a_zone_is_refused(field: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{field} 2030-01-01T00:00:00 has no time zone"):
        JobFilter(**{field: datetime(2030, 1, 1)})  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["lease_seconds", "grace_seconds", "history_seconds"])
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
def test_a_setting_that_no_calendar_holds_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=field):
        Settings(**{field: value})
