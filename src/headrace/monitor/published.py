"""What workers have counted, where a server in another process can read it.

Every worker runs `Publish` as one of its loops, so the metrics of any server tell of all workers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from headrace.clock import Clock
from headrace.engine.base import Records
from headrace.errors import EngineUnavailable, HeadraceError
from headrace.loop import Loop
from headrace.model.views import Record
from headrace.telemetry import BOUNDS, Histogram, Telemetry

KIND = "telemetry"
PAUSE = 2.0
IDLE_PAUSE = 60.0
FORGET_AFTER = timedelta(minutes=10)
PATIENCE = 3.0
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
    """Writes a worker's counters down every few seconds, and takes them away when it stops.

    A worker that does nothing writes once a minute, and one that has done nothing never.
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

    async def tick(self) -> float:
        """Write them down, if there is something to tell."""
        work, now = _work(self._telemetry), self._clock.now()
        idle = work == self._work
        if idle and (self._written is None or now - self._written_at < IDLE_PAUSE):
            return PAUSE
        # That the engine is away is told by those who need it.
        with contextlib.suppress(EngineUnavailable):
            name = self._worker()
            if self._written not in (None, name):
                await self._remove()
            await self._engine.record_put(KIND, name, encode(self._telemetry))
            self._written, self._work, self._written_at = name, work, now
            if idle:
                await self._tidy()
        return PAUSE

    async def stop(self, patience: float = PATIENCE) -> None:
        """Take them away, if the engine is there."""
        await super().stop(patience)
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._remove()

    async def _remove(self) -> None:
        if self._written is not None:
            await self._engine.record_delete(KIND, self._written)
            self._written = None

    async def _tidy(self) -> None:
        """Take away what workers left that were killed."""
        oldest = self._clock.utcnow() - FORGET_AFTER
        for record in await self._engine.record_list(KIND):
            if record.updated_at < oldest:
                await self._engine.record_delete(KIND, record.key)


def _work(telemetry: Telemetry) -> object:
    """What changes only when something was done; looking for jobs is nothing."""
    return telemetry.outcomes(), [
        getattr(telemetry, name) for name in COUNTERS if name != "renewals"
    ]


class _Values(msgspec.Struct, array_like=True):
    counts: list[int]
    total: float


class _Task(msgspec.Struct):
    task: str
    queue: str
    outcomes: dict[str, int]
    wait: _Values
    run: _Values


class _Counted(msgspec.Struct):
    tasks: list[_Task]
    exchange: _Values
    counters: dict[str, float]


_decoder = msgspec.json.Decoder(_Counted)


def encode(telemetry: Telemetry) -> bytes:
    """What is written down."""
    tasks = [
        _Task(each.task, each.queue, each.outcomes(), _values(each.wait), _values(each.run))
        for each in list(telemetry.tasks.values())
    ]
    counters = {name: float(getattr(telemetry, name)) for name in COUNTERS}
    counted = _Counted(tasks, _values(telemetry.exchange_seconds), counters)
    return msgspec.json.encode(counted)


def decode(records: Sequence[Record]) -> dict[str, Telemetry]:
    """What was written down, by worker. What another version wrote in another way is left out."""
    found = {}
    for record in records:
        try:
            found[record.key] = _telemetry(_decoder.decode(record.body))
        except (msgspec.DecodeError, ValueError):
            continue
    return found


def _telemetry(counted: _Counted) -> Telemetry:
    telemetry = Telemetry()
    telemetry.exchange_seconds = _histogram(counted.exchange)
    for name in COUNTERS:
        setattr(telemetry, name, counted.counters.get(name, 0))
    for task in counted.tasks:
        counters = telemetry.of(task.task, task.queue)
        counters.completed = task.outcomes.pop("completed", 0)
        counters.others = task.outcomes
        counters.wait, counters.run = _histogram(task.wait), _histogram(task.run)
    return telemetry


def _values(histogram: Histogram) -> _Values:
    return _Values(list(histogram.counts), histogram.total)


def _histogram(values: _Values) -> Histogram:
    if len(values.counts) != len(BOUNDS) + 1:
        raise ValueError("other buckets than ours")
    histogram = Histogram()
    histogram.counts, histogram.total = values.counts, values.total
    return histogram
