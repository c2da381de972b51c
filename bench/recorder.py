"""Start times of jobs in a memory-mapped file, outside any engine. Standard library only.

Slot n holds when job n was handed in (nanoseconds of the machine's monotonic clock), and when its
first line ran. All processes of a machine share that clock.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path


class Recorder:
    """Two numbers for each job: handed in, started."""

    def __init__(self, path: str | Path, count: int | None = None) -> None:
        if count is not None:
            Path(path).write_bytes(b"\0" * (16 * count))
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._numbers = memoryview(self._map).cast("q")
        self.count = len(self._numbers) // 2
        self._seen = 0

    def hand_in(self, number: int) -> None:
        self._numbers[2 * number] = time.monotonic_ns()

    def start(self, number: int) -> None:
        # A job that runs twice keeps its first start; the driver counts starts, not runs.
        if not self._numbers[2 * number + 1]:
            self._numbers[2 * number + 1] = time.monotonic_ns()

    def started(self, number: int) -> int:
        return self._numbers[2 * number + 1]

    def all_started(self) -> bool:
        """Whether every job has started; cheap to ask again and again."""
        while self._seen < self.count and self._numbers[2 * self._seen + 1]:
            self._seen += 1
        return self._seen == self.count

    def progress(self) -> int:
        """How many of the first jobs have started without a gap."""
        self.all_started()
        return self._seen

    def seconds(self) -> float:
        """From the first start to the last."""
        starts = self._numbers[1::2].tolist()
        return (max(starts) - min(starts)) / 1e9

    def latencies(self) -> list[float]:
        """Milliseconds from handed in to started, sorted."""
        numbers = self._numbers.tolist()
        return sorted(
            (numbers[n + 1] - numbers[n]) / 1e6
            for n in range(0, len(numbers), 2)
            if numbers[n] and numbers[n + 1]
        )
