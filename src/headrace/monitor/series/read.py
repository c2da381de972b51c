"""Read series: records of all workers together, once a minute however many ask."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Hashable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from headrace.api_types.series import (
    DepthView,
    ErrorInSeries,
    Percentiles,
    SeriesPoint,
    SeriesView,
    StepName,
)
from headrace.errors import InvalidInput
from headrace.model.times import check_aware
from headrace.monitor.series.flow import MINUTES, QueueFlow, flows
from headrace.monitor.series.records import (
    ALL_QUEUES,
    DAY,
    HOUR,
    MINUTE,
    STATES,
    STEPS,
    Counts,
    Depth,
    SeriesStep,
    before,
    decode,
    moment_of,
)
from headrace.task.app_like import AppLike
from headrace.telemetry import Histogram, TaskCounters

# What is returned if nobody says since when, in steps.
DEFAULT_POINTS = {"minute": 60, "hour": 24, "day": 30}
# Workers have so long to write a minute that is over before it is shown.
WRITE_TIME = 10.0
# An hour that ended so long ago does not change any more, until it is about to be folded.
UNCHANGED_AFTER = 300.0
FOLDED_SOON = 600.0
PAGE = 500
MOST_ERRORS = 50
MOST_ANSWERS = 64
MOST_BLOCKS = 48
MOST_WINDOWS = 16

T = TypeVar("T")
# Counts by the beginning of their minute, hour or day.
_Block = dict[float, Counts]


class _Shared(Generic[T]):
    """Results that are made once for all who ask; the last few are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = self._made.pop(key, None)
        if task is None or _failed(task):
            task = asyncio.create_task(make(), name="headrace series")
        self._made[key] = task
        while len(self._made) > self._most:
            del self._made[next(iter(self._made))]
        # A caller that is cancelled must not cancel the read of the others.
        return await asyncio.shield(task)


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


class SeriesReader:
    """Series of one store, for one event loop."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._answers: _Shared[SeriesView] = _Shared(MOST_ANSWERS)
        self._blocks: _Shared[_Block] = _Shared(MOST_BLOCKS)
        self._flows: _Shared[Mapping[str, QueueFlow]] = _Shared(1)
        self._windows: _Shared[list[TaskCounters]] = _Shared(MOST_WINDOWS)

    async def read(
        self,
        *,
        task: str | None = None,
        queue: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: StepName = "minute",
        queues: Collection[str] = (),
    ) -> SeriesView:
        """Return what was done by minute, hour or day, as far as it is over. `queues` empty means
        all. Only the last day is there by minute, and the last two weeks by hour.
        """
        if step not in STEPS:
            raise InvalidInput(f'step must be "minute", "hour" or "day", got {step!r}')
        size = STEPS[step]
        now = self._host.clock.now()
        written = MINUTE.start(now - WRITE_TIME)
        end = written if until is None else check_aware(until, "until").timestamp()
        end = min(math.ceil(end / MINUTE.seconds) * MINUTE.seconds, written)
        if since is None:
            begin = end - DEFAULT_POINTS[step] * size.seconds
        else:
            begin = check_aware(since, "since").timestamp()
        begin = size.start(max(begin, now - size.kept))
        end = max(end, begin)
        allowed = frozenset(queues)
        return await self._answers.get(
            (task, queue, allowed, begin, end, step, written),
            lambda: self._make(size, begin, end, written, _Wanted(task, queue, allowed)),
        )

    async def flows(self) -> Mapping[str, QueueFlow]:
        """Return how fast each queue fills and empties, by its name."""
        end = MINUTE.start(self._host.clock.now() - WRITE_TIME)
        return await self._flows.get(end, lambda: self._make_flows(end))

    async def _make_flows(self, end: float) -> Mapping[str, QueueFlow]:
        await self._host.open()
        minutes: _Block = {}
        hour = HOUR.start(end - MINUTES * MINUTE.seconds)
        while hour < end:
            minutes |= await self._block(hour, end)
            hour += HOUR.seconds
        return flows(minutes, end)

    async def last_hour(self) -> list[TaskCounters]:
        """Return what was done in the hour before the last full minute, by task and queue."""
        return await self.window(HOUR.seconds, self.written())

    def written(self, now: float | None = None) -> float:
        """Return the end of the last minute that workers have had the time to write."""
        return MINUTE.start((self._host.clock.now() if now is None else now) - WRITE_TIME)

    async def window(self, seconds: float, written: float) -> list[TaskCounters]:
        """Return what was done in the seconds before a full minute, by task and queue: up to an
        hour.
        """
        key = (seconds, written)
        return await self._windows.get(key, lambda: self._count_window(seconds, written))

    async def _count_window(self, seconds: float, written: float) -> list[TaskCounters]:
        await self._host.open()
        found: dict[tuple[str, str], TaskCounters] = {}
        begin = written - seconds
        for hour in sorted({HOUR.start(begin), HOUR.start(written)}):
            for start, counts in (await self._block(hour, written)).items():
                for key, counters in counts.attempts.tasks.items():
                    if begin <= start < written:
                        found.setdefault(key, TaskCounters(*key)).add(counters)
        return list(found.values())

    async def _make(
        self, size: SeriesStep, begin: float, end: float, written: float, wanted: _Wanted
    ) -> SeriesView:
        await self._host.open()
        count = math.ceil((end - begin) / size.seconds)
        points = [_Point() for _ in range(count)]
        errors: Counter[tuple[str, str, str]] = Counter()

        def add(start: float, counts: Counts) -> None:
            number = int((start - begin) // size.seconds)
            if begin <= start < end:
                wanted.add(points[number], counts, errors)

        # Minutes, then hours, then days: see `fold`.
        folding = HOUR.start(written - MINUTE.kept + FOLDED_SOON)
        kept = await self._list(MINUTE, begin, min(end, folding))
        hour = max(HOUR.start(begin), folding)
        while hour < end:
            for start, counts in (await self._block(hour, written)).items():
                add(start, counts)
            hour += HOUR.seconds
            await asyncio.sleep(0)
        if size is not MINUTE:
            kept |= await self._list(HOUR, begin, end)
        if size is DAY:
            kept |= await self._list(DAY, begin, end)
        contained = {name for counts in kept.values() for name in counts.contains}
        for name in kept.keys() - contained:
            moment = moment_of(name.split("/", 1)[1])
            if moment is not None:
                add(moment, kept[name])
        return SeriesView(
            step=size.name,
            since=datetime.fromtimestamp(begin, UTC),
            until=datetime.fromtimestamp(end, UTC),
            points=[
                point.view(begin + number * size.seconds) for number, point in enumerate(points)
            ],
            errors=[
                ErrorInSeries(task=task, type=error, fingerprint=mark, count=number)
                for (task, error, mark), number in errors.most_common(MOST_ERRORS)
            ],
        )

    async def _block(self, hour: float, written: float) -> _Block:
        """Return an hour by minute. One that is over is read once."""
        over = hour + HOUR.seconds <= written - UNCHANGED_AFTER
        key = (hour, None if over else written)
        return await self._blocks.get(key, lambda: self._read_block(hour))

    async def _read_block(self, hour: float) -> _Block:
        block: _Block = {}
        for name, counts in (await self._list(MINUTE, hour, hour + HOUR.seconds)).items():
            start = moment_of(name.split("/", 1)[1])
            if start is not None:
                block.setdefault(start, Counts()).add(counts)
        return block

    async def _list(self, step: SeriesStep, begin: float, end: float) -> dict[str, Counts]:
        """Return the records of a step that begin in some time, by kind and key."""
        found: dict[str, Counts] = {}
        after, last = before(begin), before(end)
        while after < last:
            records = await self._host.engine.record_list(step.kind, after=after, limit=PAGE)
            for record in records:
                counts = decode(record.body) if record.key < last else None
                if counts is not None:
                    found[f"{step.kind}/{record.key}"] = counts
            if len(records) < PAGE:
                break
            after = records[-1].key
        return found


class _Point:
    """The sums of one point."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.wait, self.run = Histogram(), Histogram()
        self.depth: Depth | None = None
        self.samples = 0

    def view(self, at: float) -> SeriesPoint:
        return SeriesPoint(
            at=datetime.fromtimestamp(at, UTC),
            outcomes=dict(self.outcomes),
            wait=_percentiles(self.wait),
            run=_percentiles(self.run),
            depth=self._depth(),
        )

    def _depth(self) -> DepthView | None:
        if not self.samples:
            return None
        depth = self.depth or Depth([0] * len(STATES), [0] * len(STATES))
        ready, waiting, scheduled, running = (total / self.samples for total in depth.total)
        most = {f"most_{state}": most for state, most in zip(STATES, depth.most, strict=True)}
        return DepthView(ready=ready, waiting=waiting, scheduled=scheduled, running=running, **most)


class _Wanted:
    """Which tasks and queues to count."""

    def __init__(self, task: str | None, queue: str | None, queues: frozenset[str]) -> None:
        self._task = task
        self._queues = frozenset({queue}) if queue is not None else queues
        if queue is not None and queues and queue not in queues:
            self._queues = frozenset({""})  # of which there is none

    def add(self, point: _Point, counts: Counts, errors: Counter[tuple[str, str, str]]) -> None:
        for counters in counts.attempts.tasks.values():
            if self._queues and counters.queue not in self._queues:
                continue
            if self._task is not None and counters.task != self._task:
                continue
            point.outcomes.update({name: n for name, n in counters.outcomes().items() if n})
            point.wait.add(counters.wait)
            point.run.add(counters.run)
            for (error, mark), number in counters.errors.items():
                errors[counters.task, error, mark] += number
        if counts.samples:
            point.samples += counts.samples
            together: Depth | None = None
            for queue in self._queues or (ALL_QUEUES,):
                depth = counts.depths.get(queue)
                if depth is not None:
                    together = depth if together is None else together.beside(depth)
            if together is not None:
                if point.depth is None:
                    point.depth = Depth([0] * len(STATES), [0] * len(STATES))
                point.depth.add(together)


def _percentiles(histogram: Histogram) -> Percentiles | None:
    if not histogram.count:
        return None
    return Percentiles(
        p50=histogram.percentile(0.5),
        p95=histogram.percentile(0.95),
        p99=histogram.percentile(0.99),
    )
