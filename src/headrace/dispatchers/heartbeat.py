"""Telling others that a dispatcher is there, and how far behind it is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import msgspec

from headrace.errors import EngineUnavailable, HeadraceError, RecordConflict
from headrace.loop import Loop
from headrace.model.ids import new_id
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

KIND = "dispatcher"
PAUSE = 5.0
# Soon after the start people look whether it works.
FIRST_PAUSE = 1.0
FIRST = 5
PATIENCE = 3.0
# A record that was left behind by a death is shown for so long.
FORGET_AFTER = timedelta(days=1)

Report = Callable[[], Awaitable[Mapping[str, object]]]


class Presence(Loop):
    """Keeps a record that says when the dispatcher was last well, its counts and its lag.

    The time of the record is when that was. A dispatcher that stops in good order takes it away;
    that of one which died goes when another starts, a day later.
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
        # Two of one name must not take each other's record away.
        self.dispatcher = name or f"{socket.gethostname()}:{os.getpid()}:{new_id()[-4:]}"
        self._host = host
        self._facts = {"type": type, "adapter": adapter}
        self._report = report
        # Called whenever the engine has answered: others may be waiting out its absence.
        self._on_answer = on_answer
        self._told = 0

    async def tick(self) -> float:
        """Write the record."""
        body = {
            **self._facts,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            **await self._report(),
        }
        # That the engine is away is told by who cannot store.
        with contextlib.suppress(EngineUnavailable):
            await self._host.open()
            await self._host.engine.record_put(KIND, self.dispatcher, msgspec.json.encode(body))
            self._on_answer()
            if not self._told:
                await self._forget_others()
        self._told += 1
        return PAUSE if self._told > FIRST else FIRST_PAUSE

    async def _forget_others(self) -> None:
        engine = self._host.engine
        oldest = self._host.clock.utcnow() - FORGET_AFTER
        for record in await engine.record_list(KIND):
            if record.updated_at < oldest:
                # Unless it has come back at this moment.
                with contextlib.suppress(RecordConflict):
                    await engine.record_delete(KIND, record.key, version=record.version)

    async def stop(self, patience: float = PATIENCE) -> None:
        """Take the record away, if the engine is there."""
        await super().stop(patience)
        if not self._told:
            return  # nobody knows of it, and its App may be closed by now
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._host.engine.record_delete(KIND, self.dispatcher)
