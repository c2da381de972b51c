"""Renewing a lease on a connection of its own."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.lease_renewal import LoopLeaseKeeper
from headrace.engine.postgres.connection.connection import LOOK_UP, Link
from headrace.engine.postgres.connection.connector import Connector
from headrace.engine.postgres.sql import sql
from headrace.model.worker import Renewal, WorkerStats


class PostgresLeaseKeeper(LoopLeaseKeeper):
    """Renews one worker's lease."""

    def __init__(
        self, connector: Connector, clock: Clock, worker_id: str, lease_seconds: float
    ) -> None:
        self._clock = clock
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        # A reply that takes a third of the lease is too late to be of use; try again then.
        timeout = max(lease_seconds / 3, 1.0)
        self._link = Link(connector, "lease", settings=LOOK_UP, timeout=timeout)

    async def _renew(self, stats: WorkerStats) -> Renewal:
        found = await self._link.fetch(
            sql.renew,
            self._clock.offset,
            self._worker_id,
            self._lease_seconds,
            stats.running,
            stats.memory_bytes,
            stats.cpu_percent,
            stats.healthy,
        )
        return Renewal(True, tuple(found[0][0])) if found else Renewal(False)

    async def _close(self) -> None:
        await self._link.close()
