"""How many files and functions a job and its like cross: `python -m bench.walk`.

A bound may be lowered when a walk has become shorter. Raise one only with a reason to give.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.processes import ROOT

# Files, and functions. A few functions are called only now and then: a file that is checked again
# after a while, keys that are read again.
BOUNDS = {
    "job": (25, 146),
    "stage": (24, 86),
    # One more than before: `store_rows` stores sixteen jobs with a statement. Two are met only if
    # keys are read again while it is counted.
    "POST /jobs": (32, 108),
    "cron firing": (25, 113),
    "event message": (22, 80),
}


@pytest.fixture(scope="module")
def walks() -> dict[str, dict[str, Any]]:
    """In a process of its own: a profiler has to be there before the first thread."""
    command = [sys.executable, "-m", "bench.walk", "--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100)
    found: dict[str, dict[str, Any]] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("name", BOUNDS)
def test_a_walk_does_not_grow(walks: dict[str, dict[str, Any]], name: str) -> None:
    files, functions = BOUNDS[name]
    walk = walks[name]
    assert walk["files"] <= files, "\n".join(walk["by_file"])
    assert walk["functions"] <= functions
    # A walk that records nothing would pass as well.
    assert walk["files"] > files // 2


def test_every_walk_has_a_bound(walks: dict[str, dict[str, Any]]) -> None:
    assert set(walks) == set(BOUNDS)
