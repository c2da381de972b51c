"""A process that reads documents for a pool: `python -m headrace_ingest.parsing.child`.

It is handed one document after the other through its standard input, and answers through its
standard output. A document is never written to a disk: where the system has files in memory, the
libraries read it from one of these.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from headrace import ParserError, ValidationError
from headrace_ingest.parsing.parsed import Limits, Parsed
from headrace_ingest.processes import begin_answers, read_frame, write_frame

PIECE = 1 << 20


class Asked(msgspec.Struct, kw_only=True):
    """One document: its bytes follow."""

    name: str
    size: int
    limits: Limits


class Answered(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of it: `parsed`, or the kind of error and its sentence."""

    parsed: Parsed | None = None
    error: str | None = None
    message: str = ""


def main(memory_limit: int) -> None:
    """Serve until the other side closes its end."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not end up between the answers.
    sys.stdout = sys.stderr
    begin_answers(target)
    while header := read_frame(source):
        asked = msgspec.json.decode(header, type=Asked)
        with _in_memory(source, asked.size) as path:
            answered = _answer(path, asked)
        write_frame(target, msgspec.json.encode(answered))


def _answer(path: Path, asked: Asked) -> Answered:
    from headrace_ingest.parsing.parse import parse_file  # noqa: PLC0415 - under the memory limit

    try:
        return Answered(parsed=parse_file(path, asked.name, limits=asked.limits))
    except (ParserError, ValidationError) as error:
        return Answered(error=type(error).__name__, message=str(error))
    except MemoryError:
        return Answered(error="MemoryError")


@contextmanager
def _in_memory(source: BinaryIO, size: int) -> Iterator[Path]:
    """Yield a path under which the next `size` bytes can be read."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("document")
        path = Path(f"/proc/self/fd/{descriptor}")
    else:
        descriptor, name = tempfile.mkstemp(prefix="headrace-ingest-")
        path = Path(name)
    try:
        while size > 0:
            piece = source.read(min(size, PIECE))
            if not piece:
                raise EOFError("the document ended early")
            os.write(descriptor, piece)
            size -= len(piece)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield path
    finally:
        os.close(descriptor)
        if not path.is_relative_to("/proc"):
            path.unlink()


if __name__ == "__main__":
    main(int(sys.argv[1]))
