"""What a process takes, as the kernel sees it."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from chaos.scene import children

MEGABYTE = 1e6
_LINE = re.compile(r"^\d{4}-\d\d-\d\dT[\d:]+Z (\w+) +(.*)", re.MULTILINE)
_NAMES = re.compile(r"[0-9a-f-]{36}|'[^']*'|\S*\d\S*")
TROUBLE = ("WARNING", "ERROR", "CRITICAL")
MESSAGE = 70


def of_process(pid: int) -> dict[str, tuple[str, float]]:
    """Units and figures by name; nothing if the process has ended."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            memory = process.memory_full_info()
            found = {
                "memory": ("MB", memory.rss / MEGABYTE),
                "memory of its own": ("MB", memory.uss / MEGABYTE),
                "descriptors": ("count", float(process.num_fds())),
                "threads": ("count", float(process.num_threads())),
            }
    except (psutil.Error, OSError):
        return {}
    return found | {"child processes": ("count", float(len(children(pid))))}


def files_in(folder: Path) -> int:
    """How many files are in a folder and those in it."""
    return sum(len(names) for _, _, names in os.walk(folder))


class Levels:
    """Counts log lines by level, and those about trouble by what they say without names."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self._read: dict[Path, int] = {}

    def look(self, of: str, output: Path) -> None:
        """Count what has been written since the last look."""
        with contextlib.suppress(FileNotFoundError), output.open("rb") as file:
            file.seek(self._read.get(output, 0))
            data = file.read()
            whole = data.rpartition(b"\n")[0]
            self._read[output] = self._read.get(output, 0) + len(whole)
            for level, message in _LINE.findall(whole.decode(errors="replace")):
                self.counts[f"{of} {level}"] += 1
                if level in TROUBLE:
                    said = _NAMES.sub("#", message)[:MESSAGE]
                    self.messages[f"{of} {level}: {said}"] += 1
