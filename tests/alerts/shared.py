"""What the programs of a scene share with the test: one time, and files in one folder."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from headrace.clock import Clock

CLOCK = "clock"
RELEASE = "release"
"""Jobs that are held may end."""
OPEN = "open"
"""The dispatcher may take what it has not."""
ROUNDS = "rounds"

_OFFSET = struct.Struct("d")


class SharedClock(Clock):
    """The wall clock plus an offset that every program sees as soon as one has changed it: it is
    in a file that all of them have in memory.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_OFFSET.pack(0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _OFFSET.size)

    @property
    def offset(self) -> float:
        """Seconds ahead of the wall clock."""
        offset: float = _OFFSET.unpack(self._memory[:])[0]
        return offset

    @offset.setter
    def offset(self, seconds: float) -> None:
        self._memory[:] = _OFFSET.pack(seconds)
