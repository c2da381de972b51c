from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.config import load
from headrace.errors import InvalidSetting


def test_defaults(tmp_path: Path) -> None:
    settings = load(environment={}, folder=tmp_path)
    assert settings.url == "sqlite:///headrace.db"
    assert (settings.lease_seconds, settings.grace_seconds, settings.max_workers) == (30, 30, 10)
    assert (settings.host, settings.port, settings.payload_limit) == ("127.0.0.1", 3989, 1_048_576)


def test_code_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text(
        'url = "sqlite:///file.db"\nmax_workers = 3\nlease_seconds = 9\nqueues = ["a", "b"]\n'
    )
    environment = {"HEADRACE_MAX_WORKERS": "4", "HEADRACE_LEASE_SECONDS": "8"}
    settings = load(environment=environment, folder=tmp_path, lease_seconds=7.0, port=None)
    assert settings.url == "sqlite:///file.db"
    assert (settings.max_workers, settings.lease_seconds, settings.port) == (4, 7, 3989)
    assert settings.queues == ("a", "b")


def test_the_older_names_for_queues(tmp_path: Path) -> None:
    both = {"WORKER_QUEUES": "a, b", "WORKER_PLATFORMS": "c"}
    assert load(environment=both, folder=tmp_path).queues == ("a", "b")
    assert load(environment={"WORKER_PLATFORMS": "c,,d"}, folder=tmp_path).queues == ("c", "d")


def test_an_unknown_variable_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="HEADRACE_LEASE_SECONDS"):
        load(environment={"HEADRACE_LEASE_SECOND": "3"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [("lease_secs = 3", "lease_seconds"), ("max_workers = 'x'", "max_workers"), ("= 3", "TOML")],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "headrace.toml").write_text(content)
    with pytest.raises(InvalidSetting, match=words):
        load(environment={}, folder=tmp_path)


@pytest.mark.parametrize(
    "given",
    [{"max_workers": 0}, {"lease_seconds": 0.5}, {"port": 70_000}, {"max_workers": "3"}],
)
def test_bad_values_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(given))):
        load(environment={}, folder=tmp_path, **given)


def test_text_from_the_environment_that_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="HEADRACE_MAX_WORKERS"):
        load(environment={"HEADRACE_MAX_WORKERS": "many"}, folder=tmp_path)
