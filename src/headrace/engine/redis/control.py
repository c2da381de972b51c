"""What people do to jobs and queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from headrace.engine.redis.connection.store import RedisStore
from headrace.engine.stored_text import storable
from headrace.model.durable.awaited import EVENT
from headrace.model.views import Delivery, RecordChange


class Steering(RedisStore):
    """See `headrace.engine.base.Steering`."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        answer = await self.run("cancel", storable(reason), *ids)
        return {each[1:].decode(): each[:1] == b"1" for each in answer}

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        return [each.decode() for each in await self.run("rerun", *ids)]

    async def rerun_unchanged(self, tokens: Mapping[str, int]) -> list[str]:
        pairs = [part for pair in tokens.items() for part in pair]
        return [each.decode() for each in await self.run("rerun_unchanged", *pairs)]

    async def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        answer = await self.run("signal", job_id, EVENT, storable(event), body)
        return cast(Delivery, answer.decode())

    async def rerun_without(
        self,
        job_id: str,
        names: Sequence[tuple[str, str]],
        *,
        token: int,
        record: RecordChange | None = None,
    ) -> bool:
        field, body = ("", b"") if record is None else (f"{record.kind}\0{record.key}", record.body)
        fields = [f"{storable(kind)}\0{storable(name)}" for kind, name in names]
        return bool(await self.run("rerun_without", job_id, token, field, body, *fields))

    async def pause(self, queue: str, paused: bool) -> None:
        await self.run("pause", queue, int(paused))
