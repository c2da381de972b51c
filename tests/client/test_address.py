"""Where the server is, who asks, and what is never shown."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import headrace
from headrace.client.address import find_address, parse_address
from headrace.config import load
from headrace.errors import InvalidSetting


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:3989", "http://127.0.0.1:3989"),
        ("https://jobs.example.com/", "https://jobs.example.com"),
        ("https://me:pass@jobs.example.com/api//", "https://jobs.example.com/api"),
        ("http://[::1]:80/", "http://[::1]:80"),
    ],
)
def test_a_url_is_kept_without_its_secrets(url: str, base: str) -> None:
    address = parse_address(url, "hr_1")
    assert address.base == base
    assert "pass" not in repr(address)
    assert "hr_1" not in repr(address)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jobs.example.com", "scheme"),
        ("ftp://jobs.example.com", "scheme 'ftp'"),
        ("http://", "http://host:port"),
        ("http://host:port", "not a URL"),
        ("http://host:99999", "not a URL"),
        ("http://me:hidden@host/?x=1", "query"),
        ("sqlite:///hidden.db", "scheme 'sqlite'"),
    ],
)
def test_a_bad_url_is_refused_without_showing_it(url: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words) as caught:
        parse_address(url)
    assert "hidden" not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidSetting, match="copy it again") as caught:
        parse_address("http://host", "hidden\n")
    assert "hidden" not in str(caught.value)


def test_code_beats_environment_beats_this_machine(tmp_path: Path) -> None:
    environment = {"API_URL": "http://there", "HEADRACE_API_KEY": "k-1"}
    settings = load(environment=environment, folder=tmp_path)
    found = find_address(None, None, settings)
    assert (found.base, found.api_key) == ("http://there", "k-1")
    found = find_address("http://here", "k-2", settings)
    assert (found.base, found.api_key) == ("http://here", "k-2")
    found = find_address(None, None, load(environment={}, folder=tmp_path))
    assert (found.base, found.api_key) == ("http://127.0.0.1:3989", None)


def test_settings_do_not_show_the_key(tmp_path: Path) -> None:
    settings = load(environment={"HEADRACE_API_KEY": "hidden"}, folder=tmp_path)
    assert settings.api_key == "hidden"
    assert "hidden" not in repr(settings)
    assert "api_key=***" in repr(settings)
    (tmp_path / "headrace.toml").write_text("api_key = 1234567\n")
    with pytest.raises(InvalidSetting, match="api_key") as caught:
        load(environment={}, folder=tmp_path)
    assert "1234567" not in str(caught.value)


@pytest.mark.parametrize("given", [{"timeout": 0}, {"retries": -1}])
def test_bad_numbers_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(given))):
        headrace.Client("http://127.0.0.1:1", **given)  # type: ignore[arg-type]


def python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.strip()


def test_a_missing_httpx_names_the_extra() -> None:
    told = python(
        "import sys; sys.modules['httpx'] = None\n"
        "import headrace, headrace.client.sync\n"
        "try: headrace.Client('http://127.0.0.1:1')\n"
        "except headrace.MissingDriver as error: print(error)"
    )
    assert 'pip install "headrace[client]"' in told


def test_who_only_enqueues_does_not_import_httpx() -> None:
    assert python(
        "import sys, headrace, headrace.cli.jobs.list; print('httpx' in sys.modules)"
    ) == ("False")


def test_a_client_changes_nothing_in_the_modules_of_the_program() -> None:
    # httpx looks for sniffio in every request. That it is missing is for the extra to mend.
    assert (
        python(
            "import importlib.util, sys\n"
            "find = importlib.util.find_spec\n"
            "hidden = lambda name, *rest: None if name == 'sniffio' else find(name, *rest)\n"
            "importlib.util.find_spec = hidden\n"
            "import headrace.client\n"
            "headrace.client.Client('http://127.0.0.1:1')\n"
            "print([name for name, module in sys.modules.items() if module is None])"
        )
        == "[]"
    )


def test_the_extra_brings_what_httpx_looks_for_in_every_request() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    needs = project["project"]["optional-dependencies"]["client"]
    assert any(each.startswith("sniffio") for each in needs)
