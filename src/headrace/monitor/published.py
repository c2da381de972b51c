"""What workers have counted, where a server in another process can read it.

A worker runs `Publish` as one of its loops; the metrics of every server then tell of all workers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec

from headrace.engine.base import Records
from headrace.errors import EngineUnavailable, HeadraceError
from headrace.loop import Loop
from headrace.model.views import Record
from headrace.telemetry import BOUNDS, Histogram, Telemetry

KIND = "telemetry"
PAUSE = 5.0
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
    """Writes a worker's counters down every few seconds, and takes them away when it stops."""

    name = "telemetry"

    def __init__(self, *, engine: Records, telemetry: Telemetry, worker: str) -> None:
        super().__init__()
        self._engine = engine
        self._telemetry = telemetry
        self._worker = worker

    async def tick(self) -> float:
        """Write them down."""
        # That the engine is away is told by those who need it.
        with contextlib.suppress(EngineUnavailable):
            await self._engine.record_put(KIND, self._worker, encode(self._telemetry))
        return PAUSE

    async def stop(self, patience: float = PATIENCE) -> None:
        """Take them away, if the engine is there."""
        await super().stop(patience)
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._engine.record_delete(KIND, self._worker)


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
