"""The lower bounds of the dependencies are versions that work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.test_wheel import LIMIT, NOT_REACHED, UV, run
from tests.packaging.test_wheel import wheel as wheel_of_this_tree

SMOKE = Path(__file__).with_name("smoke.py")
wheel = wheel_of_this_tree


@pytest.mark.timeout(3 * LIMIT)
def test_the_lowest_versions_work(wheel: Path, tmp_path: Path) -> None:
    made = run(tmp_path, UV, "venv", "--quiet", "--python", sys.executable, "env")
    assert made.returncode == 0, made.stderr
    python = str(tmp_path / "env" / "bin" / "python")
    install = (UV, "pip", "install", "--quiet", "--resolution", "lowest-direct", "--python", python)
    extras = "all"
    done = run(tmp_path, *install, f"headrace[{extras}] @ {wheel.as_uri()}")
    if done.returncode and NOT_REACHED.search(done.stderr):
        pytest.skip(f"no package registry can be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    ran = run(tmp_path, python, str(SMOKE))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout == "it works\n"
