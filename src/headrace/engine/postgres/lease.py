"""Renewing a lease from a thread of its own, whatever the event loop is doing."""

from __future__ import annotations

import asyncio

from headrace.clock import Clock
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.connection import LOOK_UP, Link
from headrace.engine.postgres.sql import query
from headrace.model.worker import Renewal, WorkerStats

_RENEW = query("renew")


class PostgresLeaseKeeper:
    """A connection in an event loop that runs only inside `renew`, on the caller's thread."""

    def __init__(
        self, address: Address, clock: Clock, worker_id: str, lease_seconds: float
    ) -> None:
        self._clock = clock
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        # A reply that takes a third of the lease is too late to be of use; try again then.
        self._link = Link(address, "lease", settings=LOOK_UP, timeout=max(lease_seconds / 3, 1.0))
        self._loop: asyncio.AbstractEventLoop | None = None

    def renew(self, stats: WorkerStats) -> Renewal:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(self._renew(stats))

    def close(self) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self._link.close())
            self._loop.close()
            self._loop = None

    async def _renew(self, stats: WorkerStats) -> Renewal:
        found = await self._link.fetch(
            _RENEW,
            self._clock.offset,
            self._worker_id,
            self._lease_seconds,
            stats.running,
            stats.memory_bytes,
            stats.cpu_percent,
            stats.healthy,
        )
        return Renewal(True, tuple(found[0][0])) if found else Renewal(False)
