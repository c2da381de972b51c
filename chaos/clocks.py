"""Clocks that are wrong: those of one process, or the engine's as all processes see it.

Each worker follows a file that the driver writes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import msgspec

from headrace.clock import Clock

CLOCK = "HEADRACE_TEST_CHAOS_CLOCK"
"""Names the file that sets this process's clocks."""

LOOK_SECONDS = 0.05


class Clocks(msgspec.Struct):
    """How many seconds clocks are off: the engine's, and the wall clock of the process."""

    engine: float = 0.0
    wall: float = 0.0


def write(path: Path, clocks: Clocks) -> None:
    """Set the clocks of whoever follows this file."""
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(clocks))
    new.replace(path)


def follow(path: Path, clock: Clock) -> None:
    """Set the clocks of this process as the file says, from now on."""
    real = time.time
    clocks = Clocks()
    setattr(time, "time", lambda: real() + clocks.wall)  # noqa: B010 - all of it sees that

    def loop() -> None:
        nonlocal clocks
        while True:
            # A handler may have used up all descriptors just now. A thread that ended then would
            # leave this process with a wrong clock for good, which no fault is meant to do.
            with contextlib.suppress(OSError):
                clocks = msgspec.json.decode(path.read_bytes(), type=Clocks)
                clock.offset = clocks.engine
            time.sleep(LOOK_SECONDS)

    threading.Thread(target=loop, daemon=True, name="clocks").start()
