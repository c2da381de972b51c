"""Renewing a lease from a thread of its own, whatever the program's event loop is doing."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from headrace.model.worker import Renewal, WorkerStats


class LoopLeaseKeeper(ABC):
    """A `LeaseKeeper` with a connection in an event loop that runs only inside `renew`, on the
    caller's thread.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    def renew(self, stats: WorkerStats) -> Renewal:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(self._renew(stats))

    def close(self) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self._close())
            self._loop.close()
            self._loop = None

    @abstractmethod
    async def _renew(self, stats: WorkerStats) -> Renewal:
        """Extend the lease."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the connection."""
