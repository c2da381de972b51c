"""`python -m chaos` as people run it: results, exit codes, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from chaos.scene import MARK

from tests.support.processes import ROOT

LIMIT = 90.0


def start(folder: Path, *arguments: str, module: str = "chaos") -> subprocess.Popen[str]:
    """Start a run whose temporary folders are made in `folder`."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def programs(folder: Path) -> list[psutil.Process]:
    """Processes of a run in this folder."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if MARK in environment and environment.get("TMPDIR", "").startswith(str(folder)):
            found.append(process)
    return found


def test_a_run_says_what_it_did_and_keeps_it_as_json(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run = start(tmp_path, "--minutes", "0.05", "--faults", "short freeze", "--json", str(out))
    said, errors = run.communicate(timeout=LIMIT)
    assert run.returncode == 0, said + errors
    assert "short freeze" in said
    assert all(len(line) <= 80 for line in said.splitlines())
    found = json.loads(out.read_text(encoding="utf-8"))["runs"]["sqlite"]
    assert found["fault_count"] >= 1
    assert found["rules"] == {}
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_nothing_behind(tmp_path: Path, how: int) -> None:
    run = start(tmp_path, "--minutes", "5", "--faults", "freeze worker", "--engine", "redis")
    end = time.monotonic() + LIMIT
    while len(programs(tmp_path)) < 5:
        assert time.monotonic() < end
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(how)
    said, errors = run.communicate(timeout=LIMIT)
    assert run.returncode == 130, said + errors
    assert programs(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_fault_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    run = start(tmp_path, "--faults", "earthquake")
    _, errors = run.communicate(timeout=LIMIT)
    assert run.returncode == 2
    assert "unknown fault 'earthquake'; known: kill worker" in errors
