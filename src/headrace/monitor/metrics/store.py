"""The metrics of a whole store, as servers show them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from headrace.errors import HeadraceError
from headrace.monitor.cached_reads import CachedReads
from headrace.monitor.counters.total import read_counters
from headrace.monitor.metrics.counters import counted_metrics
from headrace.monitor.metrics.state import (
    Limits,
    dispatcher_metrics,
    lane_metrics,
    limit_metrics,
    process_metrics,
    queue_metrics,
    read_limits,
    worker_metrics,
)
from headrace.monitor.metrics.text import Metric, text_in_pieces
from headrace.monitor.snapshot import Snapshot, Snapshots
from headrace.task.app_like import AppLike
from headrace.telemetry import Telemetry

# Counters of workers are some seconds old anyway.
COUNTED_SECONDS = 1.0
LIMITS_SECONDS = 1.0


class StoreMetrics:
    """Reads a store and what all its workers have counted, at most once a second."""

    def __init__(self, app: AppLike, snapshots: Snapshots) -> None:
        self._app = app
        self._snapshots = snapshots
        self._counters: CachedReads[Telemetry] = CachedReads(COUNTED_SECONDS)
        self._limits: CachedReads[Limits] = CachedReads(LIMITS_SECONDS)

    async def text(self, more: Iterable[Metric] = (), *, lanes: bool = True) -> bytes:
        """Return the metrics as Prometheus reads them."""
        return await text_in_pieces(await self.read(more, lanes=lanes))

    async def read(self, more: Iterable[Metric] = (), *, lanes: bool = True) -> list[Metric]:
        """Return the metrics. While the engine is away there are those that need none."""
        snapshot: Snapshot | None = None
        counters: Telemetry | None = None
        limits: Limits | None = None
        with contextlib.suppress(HeadraceError):
            snapshot = await self._snapshots.get()
            counters = await self._counters.get(None, lambda: read_counters(self._app.engine))
            limits = await self._limits.get(None, lambda: read_limits(self._app.engine))
        found = [*process_metrics(engine_up=snapshot is not None), *more]
        if snapshot is not None:
            found += queue_metrics(snapshot.queues)
            found += () if limits is None else limit_metrics(snapshot.queues, limits)
            found += lane_metrics(snapshot.lanes) if lanes else ()
            found += worker_metrics(snapshot.workers, snapshot.telemetry)
            found += dispatcher_metrics(snapshot.dispatchers)
        if counters is not None:
            found += counted_metrics(counters)
        return found
