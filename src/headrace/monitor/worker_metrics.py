"""Counters of workers, stored where a server in another process can read them.

Every worker runs `Publish` as one of its loops, so any server has the metrics of all workers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from headrace.clock import Clock
from headrace.engine.base import Records
from headrace.errors import EngineUnavailable, HeadraceError
from headrace.loops.loop import Loop, around
from headrace.model.views import Record
from headrace.telemetry import BOUNDS, OTHERS, Histogram, TaskCounters, Telemetry

KIND = "telemetry"
PAUSE = 2.0
IDLE_PAUSE = 60.0
FORGET_AFTER = timedelta(minutes=10)
TIDY_EVERY = 300.0
TIDY_STEP = 50
PATIENCE = 3.0
# A task in a queue that had nothing for so long is counted among the others, and so are those
# beyond so many that had nothing for longest: what is written every few seconds has to stay small.
FOLD_AFTER = 3_600.0
MOST_PAIRS = 1_000
# So many are made ready for writing before the event loop may do something else.
PIECE = 100
COUNTERS = (
    "claimed",
    "released",
    "refused",
    "exchange_failures",
    "renewals",
    "lease_failures",
    "leases_lost",
    "blocks",
    "block_seconds",
    "listening",
)


class Publish(Loop):
    """Stores a worker's counters every few seconds, and deletes them when it stops.

    An idle worker writes once a minute, and one that has done nothing never.
    """

    name = "telemetry"

    def __init__(
        self, *, engine: Records, telemetry: Telemetry, worker: Callable[[], str], clock: Clock
    ) -> None:
        super().__init__()
        self._engine = engine
        self._telemetry = telemetry
        self._worker = worker
        self._clock = clock
        self._written: str | None = None
        self._work: object = _work(Telemetry())
        self._written_at = clock.now()
        self._tidy_at = self._written_at + around(TIDY_EVERY)
        self._pairs = Pairs(telemetry)

    async def tick(self) -> float:
        """Store the counters, if they have changed."""
        now = self._clock.now()
        if abs(self._tidy_at - now) > 2 * TIDY_EVERY or now >= self._tidy_at:
            self._tidy_at = now + around(TIDY_EVERY)
            with contextlib.suppress(EngineUnavailable):
                await self._tidy()
        self._pairs.fold(now)
        work = _work(self._telemetry)
        idle = work == self._work
        if idle and (self._written is None or now - self._written_at < IDLE_PAUSE):
            return PAUSE
        # Others report that the engine is away.
        with contextlib.suppress(EngineUnavailable):
            name = self._worker()
            if self._written not in (None, name):
                await self._remove()
            await self._engine.record_put(KIND, name, await self._pairs.encode())
            self._written, self._work, self._written_at = name, work, now
        return PAUSE

    async def stop(self, patience: float = PATIENCE) -> None:
        """Delete the counters, if the engine is there."""
        await super().stop(patience)
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._remove()

    async def _remove(self) -> None:
        if self._written is not None:
            await self._engine.record_delete(KIND, self._written)
            self._written = None

    async def _tidy(self) -> None:
        """Delete the counters of workers that were killed."""
        oldest = self._clock.utcnow() - FORGET_AFTER
        after = ""
        while records := await self._engine.record_list(KIND, after=after, limit=TIDY_STEP):
            after = records[-1].key
            for record in records:
                if record.updated_at < oldest:
                    await self._engine.record_delete(KIND, record.key)


class Pairs:
    """Encoded counters by task and queue: few, each encoded again only if it has changed.

    Runs on the loop that counts, and yields only between two of them.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        # By task and queue: how many attempts there were at the last fold, and since when.
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        # The same, with the encoded counters.
        self._encoded: dict[tuple[str, str], tuple[int, msgspec.Raw]] = {}

    def fold(self, now: float) -> None:
        """Add those to OTHERS that were idle for long, or for longest if there are many."""
        seen, tasks = self._seen, self._telemetry.tasks
        for key, counters in tasks.items():
            attempts = counters.attempts
            before = seen.get(key)
            if before is None or before[0] != attempts or before[1] > now:
                seen[key] = (attempts, now)
        idle = sorted((since, key) for key, (_, since) in seen.items() if OTHERS not in key)
        excess = len(idle) - MOST_PAIRS
        for number, (since, key) in enumerate(idle):
            if number >= excess and now - since <= FOLD_AFTER:
                break
            self._telemetry.fold(key)
            del seen[key]
            self._encoded.pop(key, None)

    async def encode(self) -> bytes:
        """Encode the counters in pieces, so that jobs go on meanwhile."""
        tasks: list[msgspec.Raw] = []
        made = 0
        for key, counters in list(self._telemetry.tasks.items()):
            attempts = counters.attempts
            attempts_before, encoded = self._encoded.get(key, (-1, msgspec.Raw()))
            if attempts != attempts_before:
                encoded = msgspec.Raw(msgspec.json.encode(_task(counters)))
                self._encoded[key] = (attempts, encoded)
                made += 1
                if made % PIECE == 0:
                    await asyncio.sleep(0)
            tasks.append(encoded)
        return msgspec.json.encode(_counted(self._telemetry, tasks))


def _work(telemetry: Telemetry) -> object:
    """Return what changes only when something was done; polling does not count."""
    return telemetry.outcomes(), [
        getattr(telemetry, name) for name in COUNTERS if name != "renewals"
    ]


# The counts of a histogram, and its total.
_Values = tuple[list[int], float]


class _Task(msgspec.Struct):
    task: str
    queue: str
    outcomes: dict[str, int]
    wait: _Values
    run: _Values


class _Counted(msgspec.Struct):
    tasks: list[_Task]  # or each as it is encoded
    exchange: _Values
    counters: dict[str, float]


_decoder = msgspec.json.Decoder(_Counted)


def encode(telemetry: Telemetry) -> bytes:
    """Encode the counters at once."""
    tasks = [_task(each) for each in list(telemetry.tasks.values())]
    return msgspec.json.encode(_counted(telemetry, tasks))


def _task(counters: TaskCounters) -> _Task:
    wait, run = _values(counters.wait), _values(counters.run)
    return _Task(counters.task, counters.queue, counters.outcomes(), wait, run)


def _counted(telemetry: Telemetry, tasks: list[Any]) -> _Counted:
    counters = {name: float(getattr(telemetry, name)) for name in COUNTERS}
    return _Counted(tasks, _values(telemetry.exchange_seconds), counters)


def decode(records: Sequence[Record]) -> dict[str, Telemetry]:
    """Return the counters by worker. Records in the form of another version are left out."""
    found = {}
    for record in records:
        try:
            found[record.key] = _telemetry(_decoder.decode(record.body))
        except (msgspec.DecodeError, ValueError):
            continue
    return found


def _telemetry(counted: _Counted) -> Telemetry:
    telemetry = Telemetry(exchange_seconds=_histogram(counted.exchange))
    for name in COUNTERS:
        setattr(telemetry, name, counted.counters.get(name, 0))
    for task in counted.tasks:
        completed = task.outcomes.pop("completed", 0)
        wait, run = _histogram(task.wait), _histogram(task.run)
        counters = TaskCounters(task.task, task.queue, completed, task.outcomes, wait, run)
        telemetry.tasks[task.task, task.queue] = counters
    return telemetry


def _values(histogram: Histogram) -> _Values:
    return list(histogram.counts), histogram.total


def _histogram(values: _Values) -> Histogram:
    counts, total = values
    if len(counts) != len(BOUNDS) + 1:
        raise ValueError("other buckets than ours")
    return Histogram(counts, total)
