"""The records that series are stored in, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from headrace.api_types.series import StepName
from headrace.telemetry import BOUNDS, OTHERS, Histogram, TaskCounters, Telemetry

DAY_SECONDS = 86_400.0
# Beyond these, the rarest are counted together: every record has to stay small.
MOST_PAIRS = 200
MOST_QUEUES = 200
MOST_ERRORS_OF_ALL = 500
STATES = ("ready", "waiting", "scheduled", "running")
# Stands for all queues: the sum of what was there at one moment.
ALL_QUEUES = "*"
# Written in place of a worker: no worker can have this name.
DEPTHS = "(depths)"


@dataclass(frozen=True)
class SeriesStep:
    """A length of time for which there are records of their own, and how long they are kept."""

    name: StepName
    kind: str
    seconds: float
    kept: float

    def start(self, moment: float) -> float:
        """Return the beginning of the minute, hour or day (in UTC) of a moment."""
        return moment // self.seconds * self.seconds


MINUTE = SeriesStep("minute", "series-minutes", 60.0, DAY_SECONDS)
HOUR = SeriesStep("hour", "series-hours", 3_600.0, 14 * DAY_SECONDS)
DAY = SeriesStep("day", "series-days", DAY_SECONDS, 400 * DAY_SECONDS)
STEPS: Mapping[StepName, SeriesStep] = {step.name: step for step in (MINUTE, HOUR, DAY)}


def label(moment: float) -> str:
    """Return a moment as it is written in keys, which sort by it."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M}"


def moment_of(key: str) -> float | None:
    """Return the moment in a key; None if it has none."""
    try:
        return datetime.fromisoformat(f"{key.split('/', 1)[0]}+00:00").timestamp()
    except ValueError:
        return None


def before(moment: float) -> str:
    """Return what comes after all keys of earlier minutes, and before those of this moment."""
    return label(moment - MINUTE.seconds) + "~"


# The counts of a histogram, and its total.
Values = tuple[list[int], float]


def values(histogram: Histogram) -> Values:
    """Return a histogram as it is stored."""
    return list(histogram.counts), histogram.total


def histogram(stored: Values) -> Histogram:
    """Return a histogram as it was stored. Raises `ValueError` if it has other buckets."""
    counts, total = stored
    if len(counts) != len(BOUNDS) + 1:
        raise ValueError("other buckets than ours")
    return Histogram(counts, total)


class Depth(msgspec.Struct, array_like=True):
    """Jobs of a queue, by `STATES`: the sum over all samples, and the most in one of them."""

    total: list[int]
    most: list[int]

    def add(self, other: Depth) -> None:
        """Add the samples of other moments."""
        self.total = [mine + its for mine, its in zip(self.total, other.total, strict=True)]
        self.most = [max(mine, its) for mine, its in zip(self.most, other.most, strict=True)]

    def beside(self, other: Depth) -> Depth:
        """Return the depth of two queues together, of which the most were there at one moment."""
        return Depth(
            [mine + its for mine, its in zip(self.total, other.total, strict=True)],
            [mine + its for mine, its in zip(self.most, other.most, strict=True)],
        )


class _Pair(msgspec.Struct, array_like=True):
    task: str
    queue: str
    outcomes: dict[str, int]
    wait: Values
    run: Values
    errors: list[tuple[str, str, int]] = []


class _CountsBody(msgspec.Struct, omit_defaults=True):
    pairs: list[_Pair] = []
    depths: dict[str, Depth] = {}
    samples: int = 0
    contains: list[str] = []


_decoder = msgspec.json.Decoder(_CountsBody)


@dataclass(eq=False)
class Counts:
    """What is known of some length of time. `contains` names records that were added to this one
    and may still be there: they must not be counted again.
    """

    attempts: Telemetry = field(default_factory=Telemetry)
    depths: dict[str, Depth] = field(default_factory=dict)
    samples: int = 0
    contains: Sequence[str] = ()

    def add(self, other: Counts) -> None:
        """Add what is known of another length of time, or by another worker."""
        for counters in other.attempts.tasks.values():
            self.attempts.of(counters.task, counters.queue).add(counters)
        self.samples += other.samples
        for queue, depth in other.depths.items():
            self.depths.setdefault(queue, Depth([0] * len(STATES), [0] * len(STATES))).add(depth)

    def encode(self) -> bytes:
        """Return the body of a record, of bounded size."""
        self._bound()
        pairs = [
            _Pair(
                each.task,
                each.queue,
                each.outcomes(),
                values(each.wait),
                values(each.run),
                [(*error, count) for error, count in each.errors.items()],
            )
            for each in self.attempts.tasks.values()
        ]
        return msgspec.json.encode(
            _CountsBody(pairs, self.depths, self.samples, list(self.contains))
        )

    def _bound(self) -> None:
        tasks = self.attempts.tasks
        rare = sorted(tasks, key=lambda key: -tasks[key].attempts if OTHERS not in key else -1e30)
        for key in rare[MOST_PAIRS:]:
            self.attempts.fold(key)
        errors = sorted(
            ((count, key, error) for key in tasks for error, count in tasks[key].errors.items()),
            reverse=True,
        )
        for count, key, error in errors[MOST_ERRORS_OF_ALL:]:
            del tasks[key].errors[error]
            others = tasks[key].errors
            others[OTHERS, ""] = others.get((OTHERS, ""), 0) + count
        deepest = sorted(
            self.depths,
            key=lambda queue: (queue in (ALL_QUEUES, OTHERS), sum(self.depths[queue].total)),
            reverse=True,
        )
        for queue in deepest[MOST_QUEUES:]:
            depth = self.depths.pop(queue)
            others_depth = self.depths.get(OTHERS)
            self.depths[OTHERS] = depth if others_depth is None else others_depth.beside(depth)


def decode(body: bytes) -> Counts | None:
    """Return what a record holds; None if it has the form of another version."""
    try:
        stored = _decoder.decode(body)
        counts = Counts(Telemetry(), stored.depths, stored.samples, stored.contains)
        for pair in stored.pairs:
            completed = pair.outcomes.pop("completed", 0)
            counts.attempts.tasks[pair.task, pair.queue] = TaskCounters(
                pair.task,
                pair.queue,
                completed,
                pair.outcomes,
                histogram(pair.wait),
                histogram(pair.run),
                {(error, mark): count for error, mark, count in pair.errors},
            )
    except (msgspec.DecodeError, ValueError):
        return None
    return counts
