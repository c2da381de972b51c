"""What people do to jobs and queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.engine.postgres.connection.connector import Connection
from headrace.engine.postgres.connection.store import Store
from headrace.engine.postgres.sql import sql
from headrace.engine.stored_text import is_id, storable
from headrace.model.views import Delivery, RecordChange


class Steering(Store):
    """Cancel, run again, signal, pause."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        asked = [each for each in dict.fromkeys(ids) if is_id(each)]
        if not asked:
            return {}
        found = await self._common.fetch(sql.cancel, self.clock.offset, asked, storable(reason))
        return {row[0]: row[1] for row in found}

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        return await self._rerun([each for each in dict.fromkeys(ids) if is_id(each)], None)

    async def rerun_unchanged(self, tokens: Mapping[str, int]) -> list[str]:
        asked = [each for each in tokens if is_id(each)]
        return await self._rerun(asked, [tokens[each] for each in asked])

    async def _rerun(self, asked: list[str], tokens: list[int] | None) -> list[str]:
        if not asked:
            return []
        found = await self._common.fetch(sql.rerun, self.clock.offset, asked, tokens)
        moved = {row[0] for row in found}
        return [each for each in asked if each in moved]

    async def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        if not is_id(job_id):
            return "unknown"
        [(found,)] = await self._common.fetch(
            sql.signal, self.clock.offset, job_id, storable(event), body
        )
        delivery: Delivery = found
        return delivery

    async def rerun_without(
        self,
        job_id: str,
        names: Sequence[tuple[str, str]],
        *,
        token: int,
        record: RecordChange | None = None,
    ) -> bool:
        if not is_id(job_id):
            return False
        return await self._common.repeated(self._rerun_without, job_id, names, token, record)

    async def _rerun_without(
        self,
        connection: Connection,
        job_id: str,
        names: Sequence[tuple[str, str]],
        token: int,
        record: RecordChange | None,
    ) -> bool:
        kinds = [storable(kind) for kind, _ in names]
        named = [storable(name) for _, name in names]
        run, offset = self._common.run, self.clock.offset
        async with self._common.transaction(connection):
            [(accepted,)] = await run(connection, sql.rerun_without, job_id, token, kinds, named)
            if not accepted:
                return False
            if record is not None:
                await run(connection, sql.record_put, offset, record.kind, record.key, record.body)
            await run(connection, sql.rerun, offset, [job_id], None)
        return True

    async def pause(self, queue: str, paused: bool) -> None:
        await self._common.fetch(sql.pause, self.clock.offset, queue, paused)
