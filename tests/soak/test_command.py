"""`python -m soak` as people run it: help, errors, a report on Ctrl-C, and nothing left behind."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.chaos.test_command import LIMIT, programs, start


def test_a_run_that_is_stopped_tells_what_it_has_measured(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run = start(tmp_path, "--minutes", "5", "--json", str(out), module="soak")
    end = time.monotonic() + LIMIT
    # A worker and its child, the other worker, a server, two dispatchers, and the load.
    while len(programs(tmp_path)) < 6 or not list(tmp_path.glob("*/pulses/pulse-*")):
        assert time.monotonic() < end
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    said, errors = run.communicate(timeout=LIMIT)
    assert run.returncode == 130, said + errors
    assert "stopped early" in said
    assert json.loads(out.read_text(encoding="utf-8"))["soak"]["sqlite"]["series"]
    assert programs(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("name", ["minutes", "rate"])
def test_what_makes_no_sense_is_refused(tmp_path: Path, name: str) -> None:
    run = start(tmp_path, f"--{name}", "0", module="soak")
    _, errors = run.communicate(timeout=LIMIT)
    assert run.returncode == 2
    assert f"--{name} must be more than 0, got 0" in errors
