"""Times and spans as people read and write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.cli import formatting
from headrace.errors import InvalidInput

NOW = datetime(2030, 5, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5h", 5400), ("10m", 600), ("7d", 604_800), ("500ms", 0.5), (" 2 W ", 1209600)],
)
def test_a_span_is_read(text: str, seconds: float) -> None:
    assert formatting.parse_span("--delay", text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-5", "1y", "1h30m", "nan", "1e9"])
def test_a_bad_span_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="--delay"):
        formatting.parse_span("--delay", text)


def test_a_time_needs_its_zone() -> None:
    assert formatting.parse_time("--at", "2030-05-04T21:00:00+09:00") == NOW
    assert formatting.parse_time("--at", "2030-05-04T12:00:00Z") == NOW
    with pytest.raises(InvalidInput, match="no time zone"):
        formatting.parse_time("--at", "2030-05-04T12:00:00")
    with pytest.raises(InvalidInput, match="ISO 8601"):
        formatting.parse_time("--at", "tomorrow")


def test_a_moment_may_count_back_from_now() -> None:
    assert formatting.parse_moment("--since", "2h", NOW) == NOW - timedelta(hours=2)
    assert formatting.parse_moment("--since", "2030-01-01T00:00:00Z", NOW).year == 2030
    with pytest.raises(InvalidInput, match=r"--since 'x'.*2h"):
        formatting.parse_moment("--since", "x", NOW)
    with pytest.raises(InvalidInput, match="too far back"):
        formatting.parse_moment("--since", "99999999w", NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"),
        (0.34, "340 ms"),
        (0.9996, "1 s"),
        (2.5, "2.5 s"),
        (59.96, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (3599.7, "1 h"),
        (187_200, "2 d 4 h"),
    ],
)
def test_a_span_is_told_in_two_units(seconds: float, text: str) -> None:
    assert formatting.span(seconds) == text


def test_moments_are_told_from_now() -> None:
    assert formatting.ago(NOW - timedelta(seconds=5.2), NOW) == "5 s ago"
    assert formatting.ago(NOW + timedelta(minutes=3), NOW) == "in 3 min"
    assert formatting.ago(NOW, NOW) == "just now"
    assert formatting.ago(None, NOW) == "-"


def test_control_characters_are_shown_not_obeyed() -> None:
    assert formatting.clean("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
    assert formatting.clean("a\nb", lines=True) == "a\nb"
    assert formatting.clean("한국어 ✓") == "한국어 ✓"


def test_sizes_and_counts() -> None:
    assert formatting.bytes_of(512) == "512 B"
    assert formatting.bytes_of(38_200_000) == "38.2 MB"
    assert formatting.bytes_of(5e9) == "5.0 GB"
    assert formatting.plural(1, "job") == "1 job"
    assert formatting.plural(2000, "job") == "2,000 jobs"
    assert formatting.width("한국") == 4
    assert formatting.width("e\u0301") == 1
