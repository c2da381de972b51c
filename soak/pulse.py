"""What only a process itself can tell: its asyncio tasks, its live memory blocks, its jobs.

A timer of the process itself writes it into a small file, over what was there before. It is a
signal, so it comes in the main thread, where the event loop runs, also while that is busy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import msgspec

FOLDER = "HEADRACE_TEST_SOAK_PULSES"
"""Names the folder of those files."""

EVERY = 1.0
WIDTH = 200


class Pulse(msgspec.Struct):
    """One process at one moment. `ended` and `pruned` are jobs since it started."""

    tasks: int = 0
    blocks: int = 0
    ended: int = 0
    pruned: int = 0


class Counts:
    """What this process has done to jobs."""

    def __init__(self) -> None:
        self.ended = 0
        self.pruned = 0


def beat(counts: Counts) -> None:
    """Write a pulse now and then from now on, if this is one of the processes of a run.

    Processes that this one starts are not: the variable is taken away.
    """
    folder = os.environ.pop(FOLDER, None)
    if folder is None:
        return
    file = os.open(path_of(Path(folder), os.getpid()), os.O_WRONLY | os.O_CREAT, 0o644)

    def write(_: int, __: FrameType | None) -> None:
        try:
            tasks = len(asyncio.all_tasks())
        except RuntimeError:
            tasks = 0  # no event loop runs yet, or any more
        pulse = Pulse(tasks, sys.getallocatedblocks(), counts.ended, counts.pruned)
        # Always of the same length: whoever reads never sees the end of an earlier one.
        os.pwrite(file, msgspec.json.encode(pulse).ljust(WIDTH), 0)

    signal.signal(signal.SIGALRM, write)
    signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)


def path_of(folder: Path, pid: int) -> Path:
    """Where a process writes its pulse."""
    return folder / f"pulse-{pid}"


def read(folder: Path, pid: int) -> Pulse | None:
    """The last pulse of a process; None if there was none yet."""
    try:
        text = path_of(folder, pid).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(text, type=Pulse) if text else None
