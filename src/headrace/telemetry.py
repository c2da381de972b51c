"""Counters that cost next to nothing per job; a metrics page reads them.

Plain numbers in slots, written by one thread each: no locks, no labels to hash per job.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

# Seconds. From a no-op to the longest jobs that people wait for.
BOUNDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    600.0,
    3_600.0,
)
# The task and the queue under which those are counted together that had nothing for long.
OTHERS = "(others)"
# So many errors of a task are told apart; the rest is counted together.
MOST_ERRORS = 50
# Durations are added up in steps of this part of a second, about a microsecond.
GRAIN = 2.0**20


@dataclass(slots=True, eq=False)
class Histogram:
    """How often values fell into each bucket. `counts` has one more for those above all bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one value."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        # Such numbers are added without rounding. Otherwise the sum over workers would change by a
        # bit when what a gone worker has counted is added in another order: a counter went back.
        self.total += seconds * GRAIN // 1.0 / GRAIN

    def add(self, other: Histogram) -> None:
        """Count what another one has counted."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def since(self, earlier: Histogram) -> Histogram:
        """Return what was counted since this one was as an earlier copy of it."""
        counts = [now - then for now, then in zip(self.counts, earlier.counts, strict=True)]
        return Histogram(counts, self.total - earlier.total)

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    def percentile(self, share: float) -> float:
        """Return the value that this share of all values does not exceed, within its bucket. Of
        values above all bounds it is the last bound.
        """
        rank = share * self.count
        lower = 0.0
        for bound, count in zip(BOUNDS, self.counts, strict=False):
            if count and rank <= count:
                return lower + (bound - lower) * rank / count
            rank -= count
            lower = bound
        return lower

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each upper bound with how many values were at or below it; the last bound is infinite."""
        seen = 0
        for bound, count in zip((*BOUNDS, float("inf")), self.counts, strict=True):
            seen += count
            yield bound, seen


@dataclass(slots=True, eq=False)
class TaskCounters:
    """What became of the attempts at one task from one queue."""

    task: str
    queue: str
    completed: int = 0
    others: dict[str, int] = field(default_factory=dict)
    wait: Histogram = field(default_factory=Histogram)
    run: Histogram = field(default_factory=Histogram)
    # By type and fingerprint. Unlike the rest, only those since somebody last took them away, so
    # that the errors of today are not counted together because there were others last month.
    errors: dict[tuple[str, str], int] = field(default_factory=dict)

    def count(self, outcome: str) -> None:
        """Count an attempt that did not complete."""
        self.others[outcome] = self.others.get(outcome, 0) + 1

    def count_error(self, error: tuple[str, str], number: int = 1) -> None:
        """Count a failure by its error's type and fingerprint."""
        errors = self.errors
        if error not in errors and len(errors) >= MOST_ERRORS:
            error = (OTHERS, "")
        errors[error] = errors.get(error, 0) + number

    def add(self, other: TaskCounters) -> None:
        """Count what another one has counted."""
        self.completed += other.completed
        for outcome, count in other.others.items():
            self.others[outcome] = self.others.get(outcome, 0) + count
        self.wait.add(other.wait)
        self.run.add(other.run)
        for error, count in other.errors.items():
            self.count_error(error, count)

    def since(self, earlier: TaskCounters) -> TaskCounters:
        """Return what was counted since these were as an earlier copy of them, errors aside."""
        others = {
            outcome: more
            for outcome, count in self.others.items()
            if (more := count - earlier.others.get(outcome, 0))
        }
        wait, run = self.wait.since(earlier.wait), self.run.since(earlier.run)
        completed = self.completed - earlier.completed
        return TaskCounters(self.task, self.queue, completed, others, wait, run)

    def outcomes(self) -> dict[str, int]:
        """All outcomes by name."""
        return {"completed": self.completed, **self.others}

    @property
    def attempts(self) -> int:
        """How many attempts have ended."""
        return self.completed + sum(self.others.values())


@dataclass(slots=True, eq=False)
class Telemetry:
    """What one worker has seen since it started."""

    claimed: int = 0
    released: int = 0
    adopted: int = 0
    refused: int = 0
    abandoned: int = 0
    exchange_seconds: Histogram = field(default_factory=Histogram)
    exchanges: int = 0
    exchange_failures: int = 0
    notes: int = 0
    listening: bool = False
    renewals: int = 0
    lease_failures: int = 0
    leases_lost: int = 0
    tasks: dict[tuple[str, str], TaskCounters] = field(default_factory=dict)
    blocks: int = 0
    block_seconds: float = 0.0
    memory_bytes: int = 0
    cpu_percent: float = 0.0

    def of(self, task: str, queue: str) -> TaskCounters:
        """The counters of one task in one queue."""
        key = (task, queue)
        counters = self.tasks.get(key)
        if counters is None:
            counters = self.tasks[key] = TaskCounters(task, queue)
        return counters

    def fold(self, key: tuple[str, str]) -> None:
        """Count a task in a queue among the others from now on. Sums over all stay the same."""
        folded = self.tasks.pop(key, None)
        if folded is not None:
            self.of(OTHERS, OTHERS).add(folded)

    def outcomes(self) -> dict[str, int]:
        """Outcomes over all tasks."""
        total: dict[str, int] = {}
        for counters in list(self.tasks.values()):
            for outcome, count in counters.outcomes().items():
                total[outcome] = total.get(outcome, 0) + count
        return total
