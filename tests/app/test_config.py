from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import installed_bundles
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


# As the kubelet makes them for the Services headrace (with a named port), headrace-api and
# headrace-ingest: of one port each, over TCP and UDP, IPv4 and IPv6.
KUBERNETES = {
    "HEADRACE_SERVICE_HOST": "10.96.12.7",
    "HEADRACE_SERVICE_PORT": "3989",
    "HEADRACE_SERVICE_PORT_HTTP": "3989",
    "HEADRACE_PORT": "tcp://10.96.12.7:3989",
    "HEADRACE_PORT_3989_TCP": "tcp://10.96.12.7:3989",
    "HEADRACE_PORT_3989_TCP_PROTO": "tcp",
    "HEADRACE_PORT_3989_TCP_PORT": "3989",
    "HEADRACE_PORT_3989_TCP_ADDR": "10.96.12.7",
    "HEADRACE_API_SERVICE_HOST": "fd00::7",
    "HEADRACE_API_SERVICE_PORT": "80",
    "HEADRACE_API_PORT": "udp://[fd00::7]:80",
    "HEADRACE_API_PORT_80_UDP": "udp://[fd00::7]:80",
    "HEADRACE_API_PORT_80_UDP_ADDR": "fd00::7",
    "HEADRACE_INGEST_SERVICE_HOST": "10.96.12.8",
    "HEADRACE_INGEST_PORT": "tcp://10.96.12.8:3989",
    "HEADRACE_INGEST_PORT_3989_TCP": "tcp://10.96.12.8:3989",
}


def test_what_kubernetes_sets_for_a_service_stops_nothing(tmp_path: Path) -> None:
    assert load(environment=KUBERNETES, folder=tmp_path) == load(environment={}, folder=tmp_path)
    (tmp_path / "headrace.toml").write_text("port = 4000\n")
    assert load(environment=KUBERNETES, folder=tmp_path).port == 4000
    own = KUBERNETES | {"HEADRACE_PORT": "5000"}
    assert load(environment=own, folder=tmp_path).port == 5000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HEADRACE_PORT", "http://10.96.12.7:3989"),
        ("HEADRACE_PORTS", "tcp://10.96.12.7:3989"),
        ("HEADRACE_SERVICE", "10.96.12.7"),
        ("HEADRACE_PORT_TCP", "3989"),
        ("HEADRACE_HOTS", "0.0.0.0"),
    ],
)
def test_other_names_are_still_errors(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        load(environment={name: text}, folder=tmp_path)


def test_a_bundle_may_read_the_variable_of_an_older_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where it is chosen, and only if nothing else is set."""
    found = (("REDIS_URL", "shelf", "url"), ("OTHER", "other", "url"))
    monkeypatch.setattr(installed_bundles, "_older_variables", lambda: found)
    older = {"REDIS_URL": "redis://localhost/3", "OTHER": "redis://localhost/4"}
    assert load(environment=older, folder=tmp_path).url == "sqlite:///headrace.db"
    chosen = {**older, "HEADRACE_BUNDLES": "shelf"}
    assert load(environment=chosen, folder=tmp_path).url == "redis://localhost/3"
    assert load(environment=older, folder=tmp_path, bundles="shelf").url == "redis://localhost/3"
    set_anew = {**chosen, "HEADRACE_URL": "sqlite:///mine.db"}
    assert load(environment=set_anew, folder=tmp_path).url == "sqlite:///mine.db"
    assert load(environment=chosen, folder=tmp_path, url="sqlite:///x.db").url == "sqlite:///x.db"
