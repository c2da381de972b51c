"""Renewing a lease from a thread of its own, whatever the event loop is doing."""

from __future__ import annotations

import msgspec

from headrace.engine.redis.connection.blocking import BlockingConnection
from headrace.engine.redis.connection.errors import ScriptUnknown
from headrace.engine.redis.connection.store import RedisStore, call_of
from headrace.engine.redis.scripts import script
from headrace.model.worker import Renewal, WorkerStats


class RedisLeaseKeeper:
    """Renews one worker's lease on a connection of its own. See `base.LeaseKeeper`."""

    def __init__(self, store: RedisStore, worker_id: str, lease_seconds: float) -> None:
        self._store = store
        self._link = BlockingConnection(store.address)
        self._worker_id = worker_id
        self._lease_seconds = lease_seconds
        self._call = call_of(script("renew"), store.address)

    def renew(self, stats: WorkerStats) -> Renewal:
        command = (
            *self._call,
            self._store.offset,
            self._worker_id,
            self._lease_seconds,
            msgspec.msgpack.encode(stats),
        )
        try:
            alive, *cancelled = self._link.call(*command)
        except ScriptUnknown:
            self._link.call("SCRIPT", "LOAD", script("renew").source)
            alive, *cancelled = self._link.call(*command)
        return Renewal(alive=alive == 1, cancelled=tuple(each.decode() for each in cancelled))

    def close(self) -> None:
        self._link.close()
