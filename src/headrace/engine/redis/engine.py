"""The Redis engine: every verb of the contract on one connection, each an atomic script."""

from __future__ import annotations

from headrace.engine.redis.control import Steering
from headrace.engine.redis.insert import Producing
from headrace.engine.redis.job_list import Listing
from headrace.engine.redis.lifecycle import Lifecycle
from headrace.engine.redis.rates import Rates
from headrace.engine.redis.records import Records
from headrace.engine.redis.upkeep import Upkeep
from headrace.engine.redis.worker import Working


class RedisEngine(Lifecycle, Producing, Working, Upkeep, Steering, Listing, Records, Rates):
    """Jobs in Redis 7.0 or newer, or Valkey. As durable as that server's `appendonly` setting.

    Holds one connection; listening takes a second one, a lease keeper's thread a third.
    """

    async def close(self) -> None:
        await self._listener.close()
        await super().close()
