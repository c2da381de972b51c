"""The units of systemd: accepted by systemd itself, confined, and given time to stop."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, SETTLE_SECONDS, UNITS, env_file, unit

FOLDER = DEPLOY / "systemd"
INSTALLED = "/opt/headrace/bin/headrace"
# Of 10; what systemd itself calls well confined.
MOST_EXPOSED = 2.0


def analyze() -> str:
    """The program that checks units."""
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("there is no systemd here (Debian: apt-get install systemd)")
    return found


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """The units with a program that exists here, an instance of each that is a template."""
    program = str(Path(sys.executable).parent / "headrace")
    found = []
    for path in [*UNITS, FOLDER / "headrace.target"]:
        text = path.read_text("utf-8")
        if path.suffix == ".service":
            assert INSTALLED in text
        name = path.name
        (tmp_path / name).write_text(text.replace(INSTALLED, program))
        found.append(tmp_path / name.replace("@", "@one"))
    return found


def verify(units: list[Path]) -> str:
    """What systemd says about units; nothing if all is well."""
    checked = subprocess.run(
        [analyze(), "verify", "--man=no", *(f"./{path.name}" for path in units)],
        check=False,
        cwd=units[0].parent,
        capture_output=True,
        text=True,
    )
    return checked.stdout + checked.stderr + ("failed" if checked.returncode else "")


def test_systemd_accepts_them(units: list[Path]) -> None:
    assert verify(units) == ""


def test_systemd_refuses_what_does_not_exist(units: list[Path]) -> None:
    path = next(path for path in units if path.name == "headrace-cron.service")
    path.write_text(path.read_text().replace("ProtectHome=", "ProtectHomes="))
    assert "ProtectHomes" in verify(units)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_they_are_confined(path: Path) -> None:
    checked = subprocess.run(
        [analyze(), "security", "--offline=yes", "--no-pager", f"./{path.name}"],
        check=False,
        cwd=FOLDER,
        capture_output=True,
        text=True,
    )
    level = re.search(r"exposure level for \S+: ([\d.]+)", checked.stdout)
    assert level is not None, checked.stdout + checked.stderr
    assert float(level[1]) <= MOST_EXPOSED, checked.stdout


def test_they_may_finish_their_jobs() -> None:
    grace = float(env_file(FOLDER / "headrace.env.example")["HEADRACE_GRACE_SECONDS"])
    for path in UNITS:
        service = unit(path)["Service"]
        if service["Type"] != "oneshot":
            assert float(service["TimeoutStopSec"]) >= grace + SETTLE_SECONDS
            assert service["Restart"] == "always"
        # A password is never in a unit, which everybody may read.
        assert "PASSWORD" not in path.read_text("utf-8")
        assert service["EnvironmentFile"].startswith(("/etc/headrace/", "-/etc/headrace/"))
