"""What `make test` does after a failure: an accident is told, and all else stays a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.second_try import MOST

ROOT = Path(__file__).parents[2]
FAILS_ONCE = """
from pathlib import Path
def test_unsteady():
    seen = Path("seen").exists()
    Path("seen").touch()
    assert seen
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module of Python in a folder."""
    command = [sys.executable, "-m", *words]
    environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        (FAILS_ONCE, 0),
        (FAILS_ONCE + "def test_broken():\n    assert False\n", 1),
        (FAILS_ONCE + f"import pytest\n@pytest.mark.parametrize('n', range({MOST}))\n"
         "def test_each(n):\n    assert Path('seen').exists() and Path('again').exists()\n", 1),
    ],
)  # fmt: skip
def test_only_a_few_that_pass_alone_are_forgiven(tmp_path: Path, tests: str, code: int) -> None:
    (tmp_path / "test_it.py").write_text(tests)
    assert run(tmp_path, "pytest", "-q").returncode == 1
    (tmp_path / "again").touch()
    second = run(tmp_path, "tests.support.second_try")
    assert second.returncode == code, second.stdout
    assert ("UNSTEADY" in second.stdout) == (code == 0)
    assert (code != 0) or "test_it.py::test_unsteady" in second.stdout
