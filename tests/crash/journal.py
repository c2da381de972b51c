"""A log outside the engine that survives whatever happens to who writes it.

One `write` per line to a file opened for appending: the kernel keeps lines of several processes
apart, and a line that was written outlives its process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

# Settings that begin so are the tests' own: Headrace leaves them alone.
VARIABLE = "HEADRACE_TEST_JOURNAL"


class Line(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that happened. `at` is the machine's monotonic time, the same for all processes."""

    event: str
    job: str = ""
    token: int = 0
    attempt: int = 0
    lane: str | None = None
    stage: str = ""
    pid: int = msgspec.field(default_factory=os.getpid)
    at: float = msgspec.field(default_factory=time.monotonic)


def write(line: Line) -> None:
    """Append one line, durably as far as the end of this process is concerned."""
    descriptor = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, msgspec.json.encode(line) + b"\n")
    finally:
        os.close(descriptor)


def read(path: Path, wanted: Callable[[Line], bool] = lambda line: True) -> list[Line]:
    """The lines so far, in the order they were written."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [line for each in lines if wanted(line := msgspec.json.decode(each, type=Line))]
