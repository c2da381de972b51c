"""What earlier runs of a job have recorded, read once when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext

_NOTHING: Mapping[str, bytes] = {}


class ReplayedEntries:
    """The bodies of a job's entries, by kind and name. Used on the worker's event loop."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._kinds: dict[str, dict[str, bytes]] | None = None
        self._reading = asyncio.Lock()

    async def of_kind(self, kind: str) -> Mapping[str, bytes]:
        """Return the entries of a kind as of the start of this run. A first run reads nothing."""
        if self._context.token <= 1:
            return _NOTHING
        if self._kinds is None:
            async with self._reading:
                if self._kinds is None:
                    kinds: dict[str, dict[str, bytes]] = {}
                    for entry in await self._context.entries():
                        kinds.setdefault(entry.kind, {})[entry.name] = entry.body
                    self._kinds = kinds
        return self._kinds.get(kind, _NOTHING)
