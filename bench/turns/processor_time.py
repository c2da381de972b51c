"""Processor time of running processes, to the nanosecond where the system tells it so."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import psutil  # type: ignore[import-untyped]

Spent = dict[tuple[int, float], float]


class ProcessorTime:
    """What this process and a server spend from now on. `server`: the id of its first process."""

    def __init__(self, server: int | None) -> None:
        self._server = server
        self._before = _spent(server)
        self._began = time.process_time()

    def seconds(self) -> tuple[float, float]:
        """Return what was spent here and on the server, in user and system mode together."""
        here = time.process_time() - self._began
        after = _spent(self._server)
        # What has ended meanwhile is left out: an autovacuum falls into one turn and not the other.
        return here, sum(value - self._before.get(key, 0.0) for key, value in after.items())


def _spent(server: int | None) -> Spent:
    if server is None:
        return {}
    parent = psutil.Process(server)
    found: Spent = {}
    for each in (parent, *parent.children(recursive=True)):
        try:
            found[each.pid, each.create_time()] = _of(each)
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            continue
    return found


def _of(process: psutil.Process) -> float:
    # /proc/<pid>/stat counts in hundredths of a second, which is as much as what is looked for.
    exact = [_nanoseconds(path) for path in Path(f"/proc/{process.pid}/task").glob("*/schedstat")]
    if exact and any(exact):
        return sum(exact) / 1e9
    times = process.cpu_times()
    return float(times.user + times.system)


def _nanoseconds(path: Path) -> int:
    return int(path.read_text().split()[0])


def microseconds(spent: Mapping[str, float], jobs: int) -> dict[str, float]:
    """Return seconds of processor time as microseconds for each job."""
    return {name: 1e6 * seconds / jobs for name, seconds in spent.items()}
