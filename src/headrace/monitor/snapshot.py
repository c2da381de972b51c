"""The state of the store, read at most once a second, however many ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from headrace.engine.base import Records
from headrace.engine.pauses import described
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.counters.worker_metrics import KIND, decode
from headrace.task.app_like import AppLike
from headrace.telemetry import Telemetry

FRESH_SECONDS = 0.4
MOST_LANES = 100
MOST_DISPATCHERS = 100
DISPATCHER = "dispatcher"
MOST_LISTED = 1_000
# They report every few seconds. One without a report for so long is probably gone.
SILENT = timedelta(seconds=30)


class Snapshot(msgspec.Struct, kw_only=True, frozen=True):
    """Queues, workers, the longest lanes, and the last reports of dispatchers and workers."""

    queues: Sequence[QueueView]
    workers: Sequence[Worker]
    lanes: Sequence[LaneView]
    dispatchers: Sequence[Mapping[str, Any]]
    telemetry: Mapping[str, Telemetry]


class Snapshots:
    """Returns a snapshot, less than half a second old if not told otherwise. Concurrent callers
    share a read.
    """

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._last: Snapshot | None = None
        self._taken_at = float("-inf")
        self._taking: asyncio.Task[Snapshot] | None = None

    async def get(self, seconds: float | None = None) -> Snapshot:
        """Return a snapshot that is less than so many seconds old. Raises `EngineUnavailable` while
        the engine is away.
        """
        seconds = FRESH_SECONDS if seconds is None else seconds
        if self._last is not None and time.monotonic() - self._taken_at < seconds:
            return self._last
        if self._taking is None or self._taking.done():
            self._taking = asyncio.create_task(self._take(), name="headrace snapshot")
        # A caller that is cancelled must not cancel the read of the others.
        return await asyncio.shield(self._taking)

    def forget(self) -> None:
        """Read anew for the next who asks: something was changed here."""
        # A read that is under way may be from before, so nobody else gets it.
        self._last, self._taking = None, None

    async def _take(self) -> Snapshot:
        await self._host.open()
        engine = self._host.engine
        workers = await engine.workers()
        counted = decode(await engine.record_list(KIND))
        snapshot = Snapshot(
            queues=await described(engine, await engine.queues()),
            workers=workers,
            # What a lost worker counted last would stay for ever.
            telemetry={each.name: counted[each.name] for each in workers if _counts(each, counted)},
            lanes=await engine.lanes(limit=MOST_LANES),
            dispatchers=await dispatchers(
                engine, self._host.clock.utcnow(), limit=MOST_DISPATCHERS
            ),
        )
        if self._taking is asyncio.current_task():
            self._last, self._taken_at = snapshot, time.monotonic()
        return snapshot


def _counts(worker: Worker, counted: Mapping[str, Telemetry]) -> bool:
    return worker.alive and worker.name in counted


async def dispatchers(
    engine: Records, now: datetime, *, limit: int = MOST_LISTED
) -> list[dict[str, Any]]:
    """Return all that have not been stopped, by name, with their last report."""
    found = []
    for record in await engine.record_list(DISPATCHER, limit=limit):
        try:
            report = msgspec.json.decode(record.body, type=dict[str, Any])
        except msgspec.DecodeError:
            continue  # of another version
        seen = {
            "name": record.key,
            "type": report.pop("type", "queue"),
            "adapter": report.pop("adapter", "?"),
            "seen_at": record.updated_at,
            "silent": now - record.updated_at > SILENT,
        }
        found.append(seen | report)
    return found
