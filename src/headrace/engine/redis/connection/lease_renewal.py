"""Renewing a lease on a connection of its own."""

from __future__ import annotations

import msgspec

from headrace.engine.lease_renewal import LoopLeaseKeeper
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.connection.store import RedisStore
from headrace.model.worker import Renewal, WorkerStats


class RedisLeaseKeeper(LoopLeaseKeeper):
    """Renews one worker's lease."""

    def __init__(self, store: RedisStore, worker_id: str, lease_seconds: float) -> None:
        self._store = store
        # Its loop runs too seldom to watch anything.
        self._link = RedisConnection(store.address, watch=False)
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds

    async def _renew(self, stats: WorkerStats) -> Renewal:
        self._link.go_with(self._store._link)
        packed = msgspec.msgpack.encode(stats)
        alive, *cancelled = await self._store.run_by(
            self._link, "renew", self._worker_id, self._lease_seconds, packed
        )
        return Renewal(alive=alive == 1, cancelled=tuple(each.decode() for each in cancelled))

    async def _close(self) -> None:
        await self._link.close()
        self._link.reopen()
