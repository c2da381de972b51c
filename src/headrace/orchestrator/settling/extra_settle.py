"""Outcomes that travel beside a trip that is under way.

A trip waits for the engine to write down outcomes and to find jobs, and the engine waits for the
next trip while this process reads the answer. A full batch of outcomes that comes together
meanwhile is sent at once. It claims nothing, so nothing can be claimed twice or get lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, StorageFull
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange
from headrace.orchestrator.settling.settle_buffer import SettleBuffer

log = logging.getLogger("headrace.dispatcher")

# The engine is away, or full: none of the outcomes is to blame.
UNAVAILABLE = (EngineUnavailable, StorageFull, asyncio.CancelledError)


class ExtraSettler:
    """At most one batch at a time."""

    def __init__(
        self,
        *,
        engine: Engine,
        buffer: SettleBuffer,
        on_reply: Callable[[Sequence[Settlement], Exchange], None],
    ) -> None:
        self.engine = engine
        self.buffer = buffer
        # After a failure, not before a trip has come back well.
        self.enabled = True
        self._on_reply = on_reply
        self._task: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> bool:
        """Whether outcomes are on their way."""
        return self._task is not None

    def send(self) -> None:
        """Send the next batch now, unless one is under way or there has been trouble."""
        if self._task is None and self.enabled and not self.buffer.isolating:
            self._task = asyncio.get_running_loop().create_task(self._send(self.buffer.take()))

    async def stop(self) -> None:
        """Wait for nobody any longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self, batch: list[Settlement]) -> None:
        try:
            reply = await self.engine.exchange(batch)
        except BaseException as error:
            # The next trip takes them along, and has the same trouble to tell.
            self.enabled = False
            self.buffer.put_back(batch, may_be_poisoned=not isinstance(error, UNAVAILABLE))
            if not isinstance(error, Exception):
                raise
            log.info("%d outcomes are sent again: %s", len(batch), error)
        else:
            self.buffer.sent(batch)
            self._on_reply(batch, reply)
        finally:
            self._task = None
