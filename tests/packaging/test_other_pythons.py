"""Every version of Python that the package names: the suite runs on one, the others do this."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_dist import PROJECT
from tests.packaging.test_wheel import NOT_REACHED, UV, run
from tests.packaging.test_wheel import wheel as wheel_of_this_tree

PROGRAM = Path(__file__).with_name("first_jobs.py")
wheel = wheel_of_this_tree
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
NAMED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
OTHERS = [version for version in NAMED if version != HERE]


def python_of(version: str) -> str | None:
    """Return a Python of this version: on the path, or one that pyenv has installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = shutil.which(f"python{version}")
    installed = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    for found in [*([on_path] if on_path else []), *map(str, installed)]:
        asked = "import sqlite3, sys; print('%d.%d' % sys.version_info[:2])"
        # What pyenv puts on the path fails where another version is chosen.
        done = subprocess.run([found, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return found
    return None


def test_the_version_of_this_suite_is_named() -> None:
    assert HERE in NAMED


@pytest.mark.parametrize("version", OTHERS)
def test_jobs_and_commands_run_without_a_warning(wheel: Path, tmp_path: Path, version: str) -> None:
    found = python_of(version)
    if found is None:
        pytest.skip(f"Python {version} is not found on the path or in pyenv")
    made = run(tmp_path, UV, "venv", "--quiet", "--python", found, "env")
    assert made.returncode == 0, made.stderr
    python = str(tmp_path / "env" / "bin" / "python")
    install = (UV, "pip", "install", "--quiet", "--python", python)
    done = run(tmp_path, *install, f"headrace @ {wheel.as_uri()}")
    if done.returncode and NOT_REACHED.search(done.stderr):
        pytest.skip(f"no package registry can be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    shutil.copy(PROGRAM, tmp_path)
    strict = (python, "-W", "error")
    ran = run(tmp_path, *strict, PROGRAM.name)
    assert (ran.returncode, ran.stdout) == (0, "it works\n"), ran.stderr
    headrace = (*strict, "-m", "headrace.cli")
    job = run(tmp_path, *headrace, "enqueue", "in_a_thread", "number=4", "--app", "first_jobs")
    assert job.returncode == 0, job.stderr
    ran = run(tmp_path, *headrace, "worker", "--app", "first_jobs", "--exit-when-idle")
    assert ran.returncode == 0, ran.stderr
    shown = run(tmp_path, *headrace, "jobs", "show", job.stdout.strip(), "--app", "first_jobs")
    assert re.search(r"^Result\s+8$", shown.stdout, re.MULTILINE), shown.stdout + shown.stderr
