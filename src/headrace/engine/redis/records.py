"""Small administrative records, each with a version that guards changes."""

from __future__ import annotations

import struct

from headrace.engine.redis.codec import at
from headrace.engine.redis.connection.store import RedisStore
from headrace.errors import RecordConflict
from headrace.model.views import Record

_HEAD = struct.Struct("<Id")


class Records(RedisStore):
    """See `headrace.engine.base.Records`."""

    async def record_get(self, kind: str, key: str) -> Record | None:
        value = await self._link.call("HGET", self.key("records"), f"{kind}\0{key}")
        return None if value is None else _record(kind, key, value)

    async def record_put(
        self, kind: str, key: str, body: bytes, *, version: int | None = None
    ) -> Record:
        done, value = await self.run("record_put", f"{kind}\0{key}", body, guard(version))
        if not done:
            raise conflict(kind, key, version, value)
        return _record(kind, key, value + body)

    async def record_delete(self, kind: str, key: str, *, version: int | None = None) -> bool:
        done, value = await self.run("record_delete", f"{kind}\0{key}", guard(version))
        if not done:
            raise conflict(kind, key, version, value)
        return bool(value)

    async def record_list(self, kind: str, *, after: str = "", limit: int = 1_000) -> list[Record]:
        answer = await self.run("record_list", kind, after, limit)
        return [
            _record(kind, key.decode(), value)
            for key, value in zip(answer[::2], answer[1::2], strict=True)
        ]


def guard(version: int | None) -> str | int:
    """The version that has to be there, as scripts read it."""
    return "" if version is None else version


def _record(kind: str, key: str, value: bytes) -> Record:
    version, updated = _HEAD.unpack_from(value)
    return Record(kind, key, version, value[_HEAD.size :], at(updated))


def conflict(kind: str, key: str, expected: int | None, found: int) -> RecordConflict:
    """The error for a record with another version."""
    return RecordConflict(
        f"{kind} {key!r} has version {found}, not {expected}: somebody else changed it; "
        "read it again and repeat the change"
    )
