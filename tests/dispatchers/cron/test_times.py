"""When expressions fire: zones, changes of the clocks, leap days, and what never happens."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import InvalidSetting
from headrace.model.schedules.cron import Cron, find_zone, parse_cron
from tests.dispatchers.cron.calendar import fired

ZONES = [
    "UTC",
    "Asia/Seoul",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Santiago",
    "Asia/Kathmandu",
]
# Around these days of 2026 the clocks of one of the zones change.
CHANGES = [
    datetime(2026, month, day, tzinfo=UTC)
    for month, day in (
        (3, 8),
        (3, 29),
        (4, 5),
        (4, 24),
        (9, 6),
        (10, 4),
        (10, 25),
        (10, 30),
        (11, 1),
    )
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(
    expression: str, zone: str, after: datetime, until: datetime | None = None, count: int = 10_000
) -> list[datetime]:
    found = itertools.islice(Cron(expression).times(after, ZoneInfo(zone)), count)
    return list(itertools.takewhile(lambda time: until is None or time <= until, found))


def shown(expression: str, zone: str, day: str) -> list[str]:
    """Its times on one local day, as people there and in UTC read them."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
    found = times(expression, zone, start, start + timedelta(hours=40))
    local = [(time.astimezone(ZoneInfo(zone)), time) for time in found]
    return [f"{at:%H:%M%z} {time:%H:%MZ}" for at, time in local if at.date().isoformat() == day]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression",
    [
        "30 2 * * *",
        "0,30 1,2,3 * * *",
        "*/15 2 * * *",
        "0 * * * *",
        "*/30 0-4 * * *",
        "0 0-23 * * 0",
    ],
)
def test_times_are_what_looking_at_each_minute_finds(expression: str, zone: str) -> None:
    for change in CHANGES:
        start, end = change - timedelta(days=1), change + timedelta(days=2)
        local = ZoneInfo(zone)
        if start.astimezone(local).utcoffset() == end.astimezone(local).utcoffset():
            start = end - timedelta(hours=6)  # nothing happens there; a look is enough
        assert times(expression, zone, start, end) == fired(expression, zone, start, end)


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("Europe/Berlin", "2026-03-28", ["02:30+0100 01:30Z"]),
        ("Europe/Berlin", "2026-03-29", ["03:00+0200 01:00Z"]),
        ("Europe/Berlin", "2026-10-25", ["02:30+0200 00:30Z"]),
        ("America/New_York", "2026-03-08", ["03:00-0400 07:00Z"]),
        ("Australia/Lord_Howe", "2026-10-04", ["02:30+1100 15:30Z"]),
        ("Asia/Seoul", "2026-03-29", ["02:30+0900 17:30Z"]),
    ],
)
def test_a_time_of_day_fires_once_a_day(zone: str, day: str, expected: list[str]) -> None:
    assert shown("30 2 * * *", zone, day) == expected


def test_a_time_that_the_clocks_jump_over_fires_right_after_the_jump() -> None:
    # On Lord Howe Island the clocks jump by half an hour, from 02:00 to 02:30.
    assert shown("10 2 * * *", "Australia/Lord_Howe", "2026-10-04") == ["02:30+1100 15:30Z"]
    assert shown("5,10,20 2 * * *", "Australia/Lord_Howe", "2026-10-04") == ["02:30+1100 15:30Z"]
    assert shown("0 0 * * *", "Africa/Cairo", "2026-04-24") == ["01:00+0300 22:00Z"]


def test_a_rhythm_goes_on_while_the_clocks_change() -> None:
    assert shown("0 * * * *", "Europe/Berlin", "2026-10-25")[1:5] == [
        "01:00+0200 23:00Z",
        "02:00+0200 00:00Z",
        "02:00+0100 01:00Z",
        "03:00+0100 02:00Z",
    ]
    assert shown("0 * * * *", "Europe/Berlin", "2026-03-29")[1:3] == [
        "01:00+0100 00:00Z",
        "03:00+0200 01:00Z",
    ]
    assert shown("*/15 2 * * *", "Australia/Lord_Howe", "2026-04-05") == [
        "02:00+1030 15:30Z",
        "02:15+1030 15:45Z",
        "02:30+1030 16:00Z",
        "02:45+1030 16:15Z",
    ]
    for zone, change in itertools.product(ZONES, CHANGES):
        found = times("*/5 * * * *", zone, change, change + timedelta(days=1))
        apart = {later - earlier for earlier, later in itertools.pairwise(found)}
        assert apart == {timedelta(minutes=5)}


@settings(deadline=None, max_examples=100)
@given(
    minute=st.sampled_from(["0", "30", "*/15", "*", "7,52", "10-20/3"]),
    hour=st.sampled_from(["*", "2", "1-3", "*/6", "0,23"]),
    zone=st.sampled_from(ZONES),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),
    ahead=st.integers(1, 40),
)
def test_where_one_starts_makes_no_difference(
    minute: str, hour: str, zone: str, start: datetime, ahead: int
) -> None:
    cron, at = Cron(f"{minute} {hour} * * *"), find_zone(zone)
    since = start.replace(tzinfo=UTC)
    found = list(itertools.islice(cron.times(since, at), ahead + 5))
    assert found == sorted(set(found))
    assert found[0] > since
    assert list(itertools.islice(cron.times(found[ahead - 1], at), 5)) == found[ahead:]
    middle = found[ahead - 1] + (found[ahead] - found[ahead - 1]) / 2
    assert next(cron.times(middle, at)) == found[ahead]
    assert cron.latest(since, middle, at) == found[ahead - 1]
    assert cron.latest(found[ahead - 1], middle, at) is None


def test_a_leap_day_is_waited_for() -> None:
    found = times("0 12 29 2 *", "Asia/Seoul", utc("2025-01-01T00:00"), count=3)
    assert [f"{time:%Y-%m-%d}" for time in found] == ["2028-02-29", "2032-02-29", "2036-02-29"]
    zone = find_zone("Asia/Seoul")
    last = Cron("0 12 29 2 *").latest(utc("2020-06-01T00:00"), utc("2027-01-01T00:00"), zone)
    assert last == utc("2024-02-29T03:00")


def test_the_last_day_of_a_month_and_the_second_monday() -> None:
    last = times("0 0 L * *", "UTC", utc("2028-01-15T00:00"), count=3)
    assert [f"{time:%m-%d}" for time in last] == ["01-31", "02-29", "03-31"]
    monday = times("0 9 * * MON#2", "UTC", utc("2026-01-01T00:00"), count=2)
    assert [f"{time:%m-%d}" for time in monday] == ["01-12", "02-09"]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("0 0 31 2 *", 'bad day-of-month "31"'),
        ("0 0 30 2 *", 'bad day-of-month "30"'),
        ("0 0 31 4,6,9,11 *", 'bad day-of-month "31"'),
        ("61 * * * *", 'bad minute "61"'),
        ("0 24 * * *", 'bad hour "24"'),
        ("0 0 * 13 *", 'bad month "13"'),
        ("0 0 * * XYZ", 'bad day-of-week "XYZ"'),
        ("*/0 * * * *", 'bad minute "*/0"'),
        ("*/90 * * * *", "the step 90 in the minute field"),
        ("* * * *", "it has 4 fields"),
        ("@reboot", "it has 1 fields"),
        ("", "five fields"),
        ("*" * 300, "five fields"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        parse_cron(expression)
    assert reason in str(refused.value)
    assert "write five fields" in str(refused.value)


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="0123456789*/-,L#W? MONJAN@", max_size=30))
def test_whatever_is_typed_is_refused_or_fires(expression: str) -> None:
    try:
        cron = Cron(expression)
    except InvalidSetting:
        return
    assert next(cron.times(utc("2026-01-01T00:00"), ZoneInfo("UTC"))) > utc("2026-01-01T00:00")
    assert cron.words
    assert cron.shortest_interval() >= 1


@pytest.mark.parametrize(
    ("expression", "shortest"),
    [
        ("* * * * *", 60),
        ("*/5 * * * *", 300),
        ("0 * * * *", 3600),
        ("58,0 * * * *", 120),
        ("0 3 * * *", 86_400),
        ("55 23 * * *", 86_400),
        ("0,59 0,23 * * *", 60),
        ("0 0 1 * *", 28 * 86_400),
        ("0 0 1,31 * *", 86_400),
        ("0 0 29 2 *", 1_461 * 86_400),
        ("0 0,12 1 * *", 43_200),
        ("* * * * * *", 1),
        ("*/20 * * * * *", 20),
        ("30 0 0 * * 1,3", 2 * 86_400),
    ],
)
def test_the_shortest_interval(expression: str, shortest: float) -> None:
    assert Cron(expression).shortest_interval() == shortest


def test_an_expression_that_fires_too_often_is_refused() -> None:
    Cron("* * * * *").check_interval(60)
    Cron("0 0 1 * *").check_interval(27 * 86_400)
    with pytest.raises(InvalidSetting, match=r"fires 20 s apart.*min_cron_interval_seconds"):
        Cron("*/20 * * * * *").check_interval(60)
    with pytest.raises(InvalidSetting, match="fires 60 s apart"):
        Cron("0,1 3 * * *").check_interval(300)
    # Only over midnight, and only on days that follow each other.
    with pytest.raises(InvalidSetting, match="fires 120 s apart"):
        Cron("1,59 0,23 * * *").check_interval(121)
    Cron("1,59 0,23 1 * *").check_interval(3_000)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("*/5 * * * *", "every 5 minutes"),
        ("* * * * *", "every minute"),
        ("0 * * * *", "every hour"),
        ("@hourly", "every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("0 3 * * *", "at 03:00 every day"),
        ("30 2 * * MON-FRI", "at 02:30 on Monday through Friday"),
        # 45 does not go into an hour, so this is not "every 45 minutes".
        ("*/45 * * * *", "every 45th minute of every hour"),
    ],
)
def test_words(expression: str, words: str) -> None:
    assert Cron(expression).words == words


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Asia/Soul", 'did you mean "Asia/Seoul"'),
        ("seoul", 'did you mean "Asia/Seoul"'),
        ("Europe/berlin ", 'did you mean "Europe/Berlin"'),
        ("New York", 'did you mean "America/New_York"'),
        ("../../etc/passwd", "use a name such as"),
        ("/etc/passwd", "use a name such as"),
        ("", "use a name such as"),
        ("Nowhere/Qqqqqq", "use a name such as"),
    ],
)
def test_an_unknown_zone_names_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        find_zone(name)
    assert hint in str(refused.value)
