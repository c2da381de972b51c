"""Process trees of workers, found from outside: by a mark in the environment that all inherit."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MARK = "HEADRACE_TEST_MARK"
LIMIT = "SCANNER_TEST_TREE_LIMIT"
"""Names the bytes that a browser may use, for `limited.py`."""
BROWSERS = ("lightpanda", "chrom")
"""What is in the paths of all programs of a browser."""


def marked(mark: str) -> set[int]:
    """Return all processes that have this mark, without those that have ended."""
    entry = f"{MARK}={mark}".encode()
    found = set()
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal() or int(place.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if entry in (place / "environ").read_bytes().split(b"\0") and not _over(place):
                found.add(int(place.name))
    return found


def below(root: int) -> set[int]:
    """Return all processes below one, in any session."""
    parents: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(place.name)] = int(fields[1])
    found: set[int] = set()
    newest = {root}
    while newest:
        newest = {pid for pid, parent in parents.items() if parent in newest} - found
        found |= newest
    return found


def own(mark: str, before: set[int]) -> set[int]:
    """Return the processes of one test: those that have its mark, wherever they are, and those
    below this process that were not there `before`. Servers that other tests share do not count.
    """
    # A browser may write over its environment, so that it has no mark.
    return marked(mark) | (below(os.getpid()) - before)


def alive(pids: set[int]) -> set[int]:
    """Return those of these processes that have not ended."""
    return {pid for pid in pids if not _over(Path(f"/proc/{pid}"))}


def commands(pids: set[int]) -> list[str]:
    """Return the names of the programs of these processes."""
    found = []
    for pid in sorted(pids):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found.append(Path(words[0].decode(errors="replace")).name)
    return found


def browsers(pids: set[int]) -> set[int]:
    """Return those of these processes that are a browser, by the file of their program."""
    found = set()
    for pid in alive(pids):
        # A browser may hide this of its own children; the first of them is always seen.
        with contextlib.suppress(OSError):
            program = os.readlink(f"/proc/{pid}/exe")
            if any(each in program for each in BROWSERS):
                found.add(pid)
    return found


def _over(place: Path) -> bool:
    try:
        return (place / "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True
