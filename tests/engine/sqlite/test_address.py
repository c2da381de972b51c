"""sqlite:// URLs: what they mean, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.engine.sqlite.connection.address import SqliteAddress, parse_address
from headrace.errors import InvalidSetting


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///jobs.db", SqliteAddress(Path("jobs.db"))),
        ("sqlite:///data/jobs.db", SqliteAddress(Path("data/jobs.db"))),
        ("sqlite:////var/lib/jobs.db", SqliteAddress(Path("/var/lib/jobs.db"))),
        ("sqlite:///two%20words%23.db", SqliteAddress(Path("two words#.db"))),
        ("sqlite:///작업.db", SqliteAddress(Path("작업.db"))),
        ("sqlite://", SqliteAddress(None)),
        ("sqlite:///", SqliteAddress(None)),
        ("sqlite:///:memory:", SqliteAddress(None)),
        ("sqlite:///jobs.db?synchronous=normal", SqliteAddress(Path("jobs.db"), "normal")),
        ("sqlite:///jobs.db?synchronous=OFF", SqliteAddress(Path("jobs.db"), "off")),
    ],
)
def test_a_url_names_a_file_and_its_settings(url: str, expected: SqliteAddress) -> None:
    assert parse_address(url) == expected


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://jobs.db", "three slashes"),
        ("sqlite://host/jobs.db", "'host'"),
        ("sqlite:///jobs.db?sync=off", "unknown parameter 'sync'"),
        ("sqlite:///jobs.db?synchronous=maybe", "full, normal, off, got 'maybe'"),
        ("sqlite:///jobs.db?synchronous=", "got ''"),
        ("sqlite:///jobs#1.db", "%23"),
        ("sqlite:///jobs%00.db", "zero byte"),
        ("redis://x", "not a SQLite URL"),
    ],
)
def test_a_wrong_url_is_refused_with_the_remedy(url: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        parse_address(url)
