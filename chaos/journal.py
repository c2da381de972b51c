"""The log outside the engine: what was acknowledged, begun, ended and broken, and when.

One `write` for each line, to a file that is opened for appending: the kernel keeps lines of
several processes apart, and a line that was written outlives its process. There is no `fsync`,
because the machine itself is never switched off here.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import msgspec

# Settings that begin so are not Headrace's own: it leaves them alone.
VARIABLE = "HEADRACE_TEST_CHAOS_JOURNAL"

Event = Literal[
    "acknowledged",  # a producer was told that its job is stored
    "begin",  # a handler was called
    "end",  # a handler is about to return; `nonce` is in its result
    "stage",  # the function of a stage was called
    "kept",  # `ctx.stage` has returned: the stage is never run again
    "settled",  # the engine took an outcome; `name` tells which
    "refused",  # the engine refused an outcome
    "fault",  # something is broken from now on; `name` tells what
    "healed",  # it is whole again
    "calm",  # nothing is broken any more
    "died",  # process `number` has ended
]


class Line(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that happened. `at` is monotonic time, the same for all processes."""

    event: Event
    job: str = ""
    token: int = 0
    attempt: int = 0
    task: str = ""
    lane: str = ""
    number: int = 0
    nonce: str = ""
    name: str = ""
    pid: int = msgspec.field(default_factory=os.getpid)
    at: float = msgspec.field(default_factory=time.monotonic)


class Journal:
    """Writes lines. The file is opened once: a handler may have used up all descriptors since."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, line: Line) -> None:
        """Append one line."""
        os.write(self._file, _encoder.encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def from_environment() -> Journal:
    """The journal of the run that this process belongs to."""
    return Journal(os.environ[VARIABLE])


class Reader:
    """Reads what has been written since it last looked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._rest = b""

    def new(self) -> list[Line]:
        """The lines that came in, in the order they were written."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [_decoder.decode(line) for line in lines]


def read(path: Path) -> list[Line]:
    """Everything."""
    return Reader(path).new()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)
