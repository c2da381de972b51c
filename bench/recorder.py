"""Start times of jobs in memory-mapped files, outside any engine. Standard library only.

All processes of a machine share its monotonic clock.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path


class Numbers:
    """A file of 64-bit numbers that several processes see."""

    def __init__(self, path: str | Path, count: int | None = None) -> None:
        if count is not None:
            Path(path).write_bytes(b"\0" * (8 * count))
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._numbers = memoryview(self._map).cast("q")


class Recorder(Numbers):
    """Two numbers for each job: when it was handed in, and when its first line ran."""

    def __init__(self, path: str | Path, count: int | None = None) -> None:
        super().__init__(path, None if count is None else 2 * count)
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

    def starts(self) -> list[int]:
        """When jobs have started, in nanoseconds, in order."""
        return sorted(filter(None, self._numbers[1::2].tolist()))

    def rate(self, together: int = 1, *, skip: int = 0) -> float:
        """Starts per second, from the first to the last; so many start together at first."""
        starts = self.starts()[skip:]
        if len(starts) <= together:
            raise ValueError(f"{len(starts)} of {self.count} jobs have started: no rate")
        return (len(starts) - together) / ((starts[-1] - starts[0]) / 1e9)

    def latencies(self, skip: int = 0) -> list[float]:
        """Milliseconds from handed in to started, sorted, without the first few jobs."""
        numbers = self._numbers.tolist()
        return sorted(
            (numbers[n + 1] - numbers[n]) / 1e6
            for n in range(2 * skip, len(numbers), 2)
            if numbers[n] and numbers[n + 1]
        )


class Ticks(Numbers):
    """How many jobs have started, and when each hundredth did. One process writes.

    Small, whatever the number of jobs, so that it does not show where memory is measured.
    """

    EVERY = 100

    def __init__(self, path: str | Path, count: int | None = None) -> None:
        super().__init__(path, None if count is None else 2 + count // self.EVERY)
        self._room = len(self._numbers)

    def start(self) -> None:
        numbers = self._numbers
        count = numbers[0] + 1
        numbers[0] = count
        if count == 1:
            numbers[1] = time.monotonic_ns()
        elif count % self.EVERY == 0 and 1 + count // self.EVERY < self._room:
            numbers[1 + count // self.EVERY] = time.monotonic_ns()

    @property
    def count(self) -> int:
        return self._numbers[0]

    def at(self, start: int) -> float:
        """When a start was, by the monotonic clock; a multiple of EVERY, or 0."""
        return self._numbers[1 + start // self.EVERY] / 1e9

    def rate(self, first: int, last: int) -> float:
        """Starts per second from one start to another; both are multiples of EVERY, or 0."""
        begin, end = (self._numbers[1 + at // self.EVERY] for at in (first, last))
        if not (begin and end and end > begin):
            raise ValueError(f"starts {first} to {last} were not all seen: no rate")
        return (last - first) / ((end - begin) / 1e9)
