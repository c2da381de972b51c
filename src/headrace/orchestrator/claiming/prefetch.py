"""How far ahead to claim: as much as is done within moments, nothing while jobs are long. Pure."""

from __future__ import annotations

from collections import deque

# What is claimed but not started should be this much work at most.
HORIZON = 0.05
LIMIT = 1_000
# … and should not fill the memory.
BYTES = 32 * 1_048_576
# A new worker does not know its jobs yet: it takes them for long ones.
ASSUMED_SECONDS = 1.0
WEIGHT = 0.1
# Whatever has waited this long unstarted is given back: somebody else may have a free slot.
PATIENCE = 1.0


class PrefetchLimit:
    """Learns how long and how large jobs are, and says how many to hold beyond those that run."""

    __slots__ = ("limit", "mean", "size", "slots")

    def __init__(self, slots: int, limit: int = LIMIT) -> None:
        self.slots = slots
        self.limit = limit
        self.mean = ASSUMED_SECONDS
        self.size = 0.0

    def observe_duration(self, seconds: float) -> None:
        """A job took this long."""
        self.mean += (seconds - self.mean) * WEIGHT

    def observe_size(self, size: float) -> None:
        """A batch of jobs had arguments of this many bytes each."""
        self.size = max(size, self.size / 2)

    def reset(self) -> None:
        """Jobs had to be given back: become cautious again."""
        self.mean = max(self.mean, ASSUMED_SECONDS)

    def count(self) -> int:
        """How many jobs to hold unstarted."""
        by_time = HORIZON * self.slots / max(self.mean, 1e-9)
        by_size = BYTES / max(self.size, 1.0)
        return int(min(by_time, by_size, self.limit))


class ClaimAges:
    """When unstarted jobs were claimed. They start in the order they came, so batches suffice."""

    __slots__ = ("_batches", "_came", "gone")

    def __init__(self) -> None:
        self._batches: deque[tuple[int, float]] = deque()
        self._came = 0
        self.gone = 0

    def add(self, count: int, now: float) -> None:
        """A batch came in."""
        if count:
            self._came += count
            self._batches.append((self._came, now))

    @property
    def count(self) -> int:
        """How many wait. Whoever starts or gives back a job raises `gone`."""
        return self._came - self.gone

    def oldest(self) -> float | None:
        """When the oldest of those that wait was claimed."""
        batches = self._batches
        while batches and batches[0][0] <= self.gone:
            batches.popleft()
        return batches[0][1] if batches else None

    def overdue(self, now: float) -> int:
        """How many, from the front, have waited too long."""
        self.oldest()
        last = self.gone
        for upto, came in self._batches:
            if now - came < PATIENCE:
                break
            last = upto
        return last - self.gone
