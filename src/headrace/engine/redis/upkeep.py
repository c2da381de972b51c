"""What keeps the store moving."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from headrace.engine.redis.claim import claimed
from headrace.engine.redis.codec import at, read_record
from headrace.engine.redis.connection.store import RedisStore
from headrace.model.views import Due, Expired, LostJob


class Upkeep(RedisStore):
    """See `headrace.engine.base.Upkeep`."""

    async def promote_due(self, limit: int) -> Due:
        moved, next_in = await self.run("due", limit)
        return Due(moved, float(next_in) if next_in else None)

    async def expire(self, limit: int) -> Expired:
        next_in, *ids = await self.run("expire", limit)
        return Expired(tuple(each.decode() for each in ids), float(next_in) if next_in else None)

    async def wake(self, ids: Sequence[str]) -> list[str]:
        if not ids:
            return []
        return [each.decode() for each in await self.run("wake", *ids)]

    async def suspended(self, *, after: str = "", limit: int = 1_000) -> list[str]:
        command = ("ZRANGE", self.key("suspended"), f"({after}", "+", "BYLEX", "LIMIT", 0, limit)
        return [each.decode() for each in await self._link.call(*command)]

    async def take_lost(self, limit: int) -> list[LostJob]:
        stamp, *answer = await self.run("lost", limit)
        (now,) = struct.unpack("<d", stamp)
        lost = []
        for n in range(0, len(answer), 3):
            record = read_record(answer[n + 1])
            lost.append(
                LostJob(
                    job=claimed(answer[n], record, answer[n + 2]),
                    worker=record.worker_name or "",
                    started_at=at(record.started),
                    age=max(0.0, now - record.started),
                )
            )
        return lost

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        age = "" if older_than is None else repr(float(older_than))
        pruned, passed = 0, 0
        while not pruned and passed >= 0:
            # A step that deletes nothing has met only children that are spared; others may follow.
            pruned, passed = await self.run(
                "prune", age, "" if keep is None else keep, limit, passed
            )
        if pruned < limit:
            # The last of several steps: workers, rates and queues are looked through once.
            await self._forget_workers()
            await self._forget_rates()
            await self._forget_queues()
        return pruned

    async def _forget_workers(self) -> None:
        passed = 0
        while passed >= 0:
            passed = await self.run("forget_workers", passed)

    async def _forget_rates(self) -> None:
        after = await self.run("forget_rates", "")
        while after:
            after = await self.run("forget_rates", after)

    async def _forget_queues(self) -> None:
        at, least = await self.run("forget_queues", 0, "")
        while at != b"0":
            at, least = await self.run("forget_queues", at, least)
