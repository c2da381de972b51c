"""What people do to jobs and queues."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.redis.store import Store
from headrace.engine.text import storable


class Steering(Store):
    """See `headrace.engine.base.Steering`."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        answer = await self.run("cancel", storable(reason), *ids)
        return {each[1:].decode(): each[:1] == b"1" for each in answer}

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        return [each.decode() for each in await self.run("rerun", *ids)]

    async def pause(self, queue: str, paused: bool) -> None:
        await self.run("pause", queue, int(paused))
