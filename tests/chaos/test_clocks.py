"""The clocks of a worker follow their file, whatever else is broken in that process."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from chaos.clocks import Clocks

from chaos import clocks

LIMIT = 60

PROGRAM = """
import os, sys, threading, time
from pathlib import Path

from chaos import clocks
from headrace.clock import Clock

path, clock, looks, pause = Path(sys.argv[1]), Clock(), 0, time.sleep


def counted(seconds):
    global looks
    looks += 1
    pause(seconds)


time.sleep = counted
clocks.follow(path, clock)


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, (clock.offset, looks)
        pause(0.01)


wait_until(lambda: clock.offset == 5.0)
used = []
try:
    while True:
        used.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
seen = looks
follower = next(each for each in threading.enumerate() if each.name == "clocks")
wait_until(lambda: looks >= seen + 2 or not follower.is_alive())
for each in used:
    os.close(each)
print("free again", flush=True)
wait_until(lambda: clock.offset == 0.0)
"""


def _few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def test_a_clock_is_right_again_after_descriptors_were_used_up(tmp_path: Path) -> None:
    path = tmp_path / "clocks.json"
    clocks.write(path, Clocks(engine=5.0))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_few_descriptors,  # noqa: PLW1509 - no threads are needed before it
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "free again\n"
            clocks.write(path, Clocks())
            assert program.wait(LIMIT) == 0
        finally:
            program.kill()
