"""The limit for the memory of a process tree, from the worker's side: see tree_memory.py."""

from __future__ import annotations

import os
import sys

from headrace.errors import InvalidSetting

LONGEST_REPORT = 200
_WAYS = {
    "cgroup": "limited by a cgroup",
    "pss": "the sum of their PSS, watched, as no cgroup could be made",
    "rss": "the sum of their RSS, watched, as no cgroup could be made and PSS cannot be read",
    "mixed": (
        "the sum of their PSS, or RSS where PSS cannot be read, watched, as no cgroup could be made"
    ),
}


class TreeLimit:
    """A limit that is given to a supervisor, and the pipe by which that reports."""

    def __init__(self, limit: float) -> None:
        if sys.platform != "linux":
            raise InvalidSetting(
                f"tree_memory_limit {limit:,} needs Linux: processes are found in /proc; use "
                "memory_limit, which holds for each process"
            )
        self._limit = int(limit)
        self._report, self.end = os.pipe()
        os.set_blocking(self._report, False)
        self._open = True

    @property
    def arguments(self) -> tuple[str, str]:
        """The arguments for the supervisor."""
        return str(self._limit), str(self.end)

    def close_end(self) -> None:
        """Close the end that the supervisor has."""
        os.close(self.end)

    def close(self) -> None:
        """Close our end; a second time is fine."""
        if self._open:
            self._open = False
            os.close(self._report)

    def exceeded(self) -> str | None:
        """Return what was exceeded and how that was found; None if the supervisor did not say so.
        Asked once, after the supervisor has ended.
        """
        if not self._open:
            return None
        try:
            report = os.read(self._report, LONGEST_REPORT).decode().split()
        except BlockingIOError:
            return None
        if len(report) != 3:
            return None
        way, used, processes = report[0], int(report[1]), int(report[2])
        count = f" in {processes} processes" if processes else ""
        return (
            f"used {used:,} bytes{count}, with all programs that it started, and its "
            f"tree_memory_limit is {self._limit:,} ({_WAYS[way]}); all were killed"
        )
