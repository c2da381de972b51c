"""Small administrative records with versions."""

from __future__ import annotations

from typing import Protocol

from headrace.model.views import (
    Record,
)


class Records(Protocol):
    """Small administrative records, each with a version that guards changes."""

    async def record_get(self, kind: str, key: str) -> Record | None:
        """Return one record, or None."""

    async def record_put(
        self, kind: str, key: str, body: bytes, *, version: int | None = None
    ) -> Record:
        """Write a record. `version` None: whatever is there; 0: only if it does not exist; n: only
        if it still has version n. Raises `RecordConflict` otherwise.
        """

    async def record_delete(self, kind: str, key: str, *, version: int | None = None) -> bool:
        """Delete a record, with the same guard. False if it did not exist."""

    async def record_list(self, kind: str, *, after: str = "", limit: int = 1_000) -> list[Record]:
        """Return records of a kind by key, in the order of its bytes, after a key."""
