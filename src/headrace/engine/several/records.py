"""Records: in the default store, except for those that are written in one step with a job."""

from __future__ import annotations

from headrace.engine.several.store.members import SeveralMembers
from headrace.model.views import Record

OF_JOBS = frozenset({"replaced-children", "pruned-artifacts"})
"""Kinds of records that a store writes together with a job: they are where the job is."""


class Records(SeveralMembers):
    """Small administrative records."""

    async def record_get(self, kind: str, key: str) -> Record | None:
        """Return one record, or None."""
        if kind not in OF_JOBS:
            return await self.default.ask(lambda engine: engine.record_get(kind, key))
        answers = await self.ask_all(lambda engine: engine.record_get(kind, key))
        return next((each for each in answers.values() if each is not None), None)

    async def record_put(
        self, kind: str, key: str, body: bytes, *, version: int | None = None
    ) -> Record:
        """Write a record, where it is already if it is one of a job."""
        member = self.default
        if kind in OF_JOBS:
            answers = await self.ask_all(lambda engine: engine.record_get(kind, key))
            member = next((one for one, each in answers.items() if each is not None), member)
        return await member.ask(lambda engine: engine.record_put(kind, key, body, version=version))

    async def record_delete(self, kind: str, key: str, *, version: int | None = None) -> bool:
        """Delete a record."""
        if kind not in OF_JOBS:
            return await self.default.ask(
                lambda engine: engine.record_delete(kind, key, version=version)
            )
        answers = await self.ask_all(lambda engine: engine.record_get(kind, key))
        there = [member for member, each in answers.items() if each is not None]
        deleted = [
            await member.ask(lambda engine: engine.record_delete(kind, key, version=version))
            for member in there or [self.default]
        ]
        return any(deleted)

    async def record_list(self, kind: str, *, after: str = "", limit: int = 1_000) -> list[Record]:
        """Return records of a kind by key."""
        if kind not in OF_JOBS:
            return await self.default.ask(
                lambda engine: engine.record_list(kind, after=after, limit=limit)
            )
        answers = await self.ask_all(
            lambda engine: engine.record_list(kind, after=after, limit=limit)
        )
        found = [each for records in answers.values() for each in records]
        return sorted(found, key=lambda each: each.key.encode())[:limit]
