"""The record by which others see that a dispatcher is alive, and how far behind it is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

import msgspec

from headrace.errors import EngineUnavailable, HeadraceError, RecordConflict
from headrace.loops.loop import UNHEALTHY_AFTER, Loop
from headrace.model.ids import new_id
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

KIND = "dispatcher"
PAUSE = 5.0
# More often at first: after a start people want to see that it works.
FIRST_PAUSE = 1.0
FIRST = 5
PATIENCE = 3.0
# Records of dispatchers that died are shown for this long.
FORGET_AFTER = timedelta(days=1)

Report = Callable[[], Awaitable[Mapping[str, object]]]


class DispatcherHeartbeat(Loop):
    """Writes a record with the dispatcher's counts and its lag, every few seconds.

    The record's time is the last sign of life. A dispatcher deletes its record when it stops; that
    of one that died is deleted a day later, when another dispatcher starts.
    """

    name = "presence"

    def __init__(
        self,
        *,
        host: AppLike,
        type: str,
        adapter: str,
        report: Report,
        name: str | None,
        on_answer: Callable[[], None],
    ) -> None:
        super().__init__()
        # Unique, so that two of one name do not delete each other's record.
        self.dispatcher = name or f"{socket.gethostname()}:{os.getpid()}:{new_id()[-4:]}"
        self._host = host
        self._facts = {"type": type, "adapter": adapter}
        self._report = report
        # Called after each reply of the engine: other loops may wait for it to come back.
        self._on_answer = on_answer
        self._writes = 0
        # How often in a row the engine did not take the record.
        self.misses = 0
        # What was reported last, whether or not it could be stored, and when it last was.
        self.last_report: Mapping[str, object] = {}
        self.stored_at: datetime | None = None

    @property
    def engine_up(self) -> bool:
        """Return whether the engine replied lately."""
        return self.stored_at is not None and self.misses < UNHEALTHY_AFTER

    async def tick(self) -> float:
        """Write the record."""
        body = {
            **self._facts,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            **await self._report(),
        }
        self.last_report = body
        self.misses += 1  # until the engine has replied
        # The loop that stores messages reports it when the engine is away.
        with contextlib.suppress(EngineUnavailable):
            await self._host.open()
            await self._host.engine.record_put(KIND, self.dispatcher, msgspec.json.encode(body))
            self.misses, self.stored_at = 0, self._host.clock.utcnow()
            self._on_answer()
            if not self._writes:
                await self._forget_others()
        self._writes += 1
        soon = self._writes <= FIRST or 0 < self.misses < UNHEALTHY_AFTER
        return FIRST_PAUSE if soon else PAUSE

    async def _forget_others(self) -> None:
        engine = self._host.engine
        oldest = self._host.clock.utcnow() - FORGET_AFTER
        for record in await engine.record_list(KIND):
            if record.updated_at < oldest:
                # A conflict means that it has just come back.
                with contextlib.suppress(RecordConflict):
                    await engine.record_delete(KIND, record.key, version=record.version)

    async def stop(self, patience: float = PATIENCE) -> None:
        """Delete the record, if the engine can be reached."""
        await super().stop(patience)
        if not self._writes:
            return  # there is no record, and the App may be closed by now
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._host.engine.record_delete(KIND, self.dispatcher)
