"""The lower bounds of the dependencies are versions that work."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.packaging.test_dist import PROJECT
from tests.packaging.test_wheel import LIMIT, NOT_REACHED, UV, run
from tests.packaging.test_wheel import wheel as wheel_of_this_tree

SMOKE = Path(__file__).with_name("smoke.py")
wheel = wheel_of_this_tree
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# Named one by one: of what the wheel asks for, uv would take the newest.
DIRECT = sorted(
    {
        *PROJECT["dependencies"],
        *(each for name, some in EXTRAS.items() if name != "all" for each in some),
    }
)


@pytest.mark.timeout(3 * LIMIT)
def test_the_lowest_versions_work(wheel: Path, tmp_path: Path) -> None:
    made = run(tmp_path, UV, "venv", "--quiet", "--python", sys.executable, "env")
    assert made.returncode == 0, made.stderr
    python = str(tmp_path / "env" / "bin" / "python")
    install = (UV, "pip", "install", "--quiet", "--resolution", "lowest-direct", "--python", python)
    done = run(tmp_path, *install, f"headrace[all] @ {wheel.as_uri()}", *DIRECT)
    if done.returncode and NOT_REACHED.search(done.stderr):
        pytest.skip(f"no package registry can be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    frozen = run(tmp_path, UV, "pip", "freeze", "--quiet", "--python", python).stdout
    for name in ("msgspec", "click", "cronsim", "fastapi"):
        [bound] = {found[1] for each in DIRECT if (found := re.match(rf"{name}>=([\d.]+)", each))}
        assert re.search(rf"^{name}=={re.escape(bound)}(\.0)*$", frozen, re.MULTILINE), frozen
    ran = run(tmp_path, python, str(SMOKE))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout == "it works\n"
