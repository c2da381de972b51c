"""`python -m bench.turns` compares two versions by processor time."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil  # type: ignore[import-untyped]
import pytest
from bench.arena import ENGINES, ROOT
from bench.turns.__main__ import BAR, Samples, told
from bench.turns.processor_time import ProcessorTime

SECONDS = 0.05
LIMIT = 120.0


@pytest.mark.parametrize("engine", ENGINES)
def test_two_versions_are_measured_in_turns(engine: str) -> None:
    command = [sys.executable, "-m", "bench.turns", "HEAD", "--engine", engine]
    done = subprocess.run(
        [*command, "--turns", "1", "--single", "10", "--many", "40"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    # So few jobs may well seem slower: that is 1, and a crash leaves no table.
    assert done.returncode in (0, 1), done.stderr
    parts = 2 if engine == "sqlite" else 3
    assert len(done.stdout.splitlines()) == 3 * parts, done


def samples(here: list[float], server: list[float]) -> Samples:
    return {("drain", "here"): here, ("drain", "server"): server}


def test_a_step_is_slower_if_best_and_median_say_so() -> None:
    old = samples([10.0, 11.0, 12.0], [10.0, 10.0, 10.0])
    slower = [value * (BAR + 0.01) for value in (10.0, 11.0, 12.0)]
    assert told("redis", old, samples(slower, [11.0] * 3))
    # One side may pay for the other.
    assert not told("redis", old, samples([12.0, 13.0, 14.0], [8.0] * 3))
    assert not told("redis", old, samples([10.0, 20.0, 20.0], [10.0] * 3))


def test_the_time_of_a_server_and_its_children_counts() -> None:
    spin = f"import time\ninput()\nwhile time.process_time() < {10 * SECONDS}: pass\ninput()\n"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", parent], stdin=pipe) as server:
        assert server.stdin is not None
        while not (found := psutil.Process(server.pid).children()):
            assert server.poll() is None
        meter = ProcessorTime(server.pid)
        server.stdin.write(b"\n")
        server.stdin.flush()
        while sum(found[0].cpu_times()[:2]) < 2 * SECONDS:
            assert server.poll() is None
        here, there = meter.seconds()
        server.communicate(b"\n")
    assert there >= SECONDS
    assert here < LIMIT
