"""Small administrative records, each with a version that guards changes."""

from __future__ import annotations

from headrace.engine.postgres import rows
from headrace.engine.postgres.connection.store import Store
from headrace.engine.postgres.sql import sql
from headrace.errors import RecordConflict
from headrace.model.views import Record


class Records(Store):
    """Records by kind and key."""

    async def record_get(self, kind: str, key: str) -> Record | None:
        found = await self._common.fetch(sql.record_get, kind, key)
        return rows.record(found[0]) if found else None

    async def record_put(
        self, kind: str, key: str, body: bytes, *, version: int | None = None
    ) -> Record:
        offset = self.clock.offset
        match version:
            case None:
                found = await self._common.fetch(sql.record_put, offset, kind, key, body)
            case 0:
                found = await self._common.fetch(sql.record_create, offset, kind, key, body)
            case _:
                found = await self._common.fetch(
                    sql.record_replace, offset, kind, key, body, version
                )
        if not found:
            raise conflict(kind, key, version)
        return rows.record(found[0])

    async def record_delete(self, kind: str, key: str, *, version: int | None = None) -> bool:
        [(deleted, existed)] = await self._common.fetch(sql.record_delete, kind, key, version)
        if existed and not deleted and version is not None:
            raise conflict(kind, key, version)
        return bool(deleted)

    async def record_list(self, kind: str, *, after: str = "", limit: int = 1_000) -> list[Record]:
        return [
            rows.record(row)
            for row in await self._common.fetch(sql.record_list, kind, after, limit)
        ]


def conflict(kind: str, key: str, version: int | None) -> RecordConflict:
    """The error to raise when a record does not have the version that was expected."""
    expected = "exists already" if version == 0 else f"no longer has version {version}"
    return RecordConflict(f"{kind} {key!r} {expected}; read it again and repeat the change")
