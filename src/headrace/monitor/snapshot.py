"""The state of the store, read at most once a second, however many ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.dispatchers import dispatchers
from headrace.monitor.worker_metrics import KIND, decode
from headrace.task.app_like import AppLike
from headrace.telemetry import Telemetry

FRESH_SECONDS = 1.0
MOST_LANES = 100
MOST_DISPATCHERS = 100


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    """Queues, workers, the longest lanes, and the last reports of dispatchers and workers."""

    queues: Sequence[QueueView]
    workers: Sequence[Worker]
    lanes: Sequence[LaneView]
    dispatchers: Sequence[Mapping[str, Any]]
    telemetry: Mapping[str, Telemetry]


class Snapshots:
    """Returns a snapshot that is at most a second old. Concurrent callers share a read."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._last: Snapshot | None = None
        self._taken_at = float("-inf")
        self._taking: asyncio.Task[Snapshot] | None = None

    async def get(self) -> Snapshot:
        """Return the snapshot. Raises `EngineUnavailable` while the engine is away."""
        if self._last is not None and time.monotonic() - self._taken_at < FRESH_SECONDS:
            return self._last
        if self._taking is None or self._taking.done():
            self._taking = asyncio.create_task(self._take(), name="headrace snapshot")
        # A caller that is cancelled must not cancel the read of the others.
        return await asyncio.shield(self._taking)

    async def _take(self) -> Snapshot:
        await self._host.open()
        engine = self._host.engine
        workers = await engine.workers()
        counted = decode(await engine.record_list(KIND))
        snapshot = Snapshot(
            queues=await engine.queues(),
            workers=workers,
            # What a lost worker counted last would stay for ever.
            telemetry={each.name: counted[each.name] for each in workers if _counts(each, counted)},
            lanes=await engine.lanes(limit=MOST_LANES),
            dispatchers=await dispatchers(
                engine, self._host.clock.utcnow(), limit=MOST_DISPATCHERS
            ),
        )
        self._last, self._taken_at = snapshot, time.monotonic()
        return snapshot


def _counts(worker: Worker, counted: Mapping[str, Telemetry]) -> bool:
    return worker.alive and worker.name in counted
