"""The ways into the engine: one, or two where that is faster."""

from __future__ import annotations

import logging
import time

from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.errors import EngineUnavailable
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

TRY_AGAIN_SECONDS = 60.0


class Door:
    """A connection to the engine: the App's own."""

    def __init__(self, host: AppLike) -> None:
        self.host = host

    async def open(self) -> Engine:
        """The engine, connected. Doing it again is fine."""
        await self.host.open()
        return self.host.engine

    async def close(self) -> None:
        """Close what was opened here: nothing, the App goes on."""


class SideDoor(Door):
    """A connection of its own, made when it is first used.

    A server may allow no more connections: then the App's own serves as well, only not as fast.
    """

    def __init__(self, host: AppLike) -> None:
        super().__init__(host)
        self._engine: Engine | None = None
        self._try_at = 0.0

    async def open(self) -> Engine:
        """The engine, connected. Doing it again is fine."""
        if self._engine is None:
            main = await super().open()
            if time.monotonic() < self._try_at:
                return main
            engine = open_engine(self.host.settings.url, clock=self.host.clock)
            try:
                await engine.open()
            except EngineUnavailable as error:
                log.warning("Messages are stored over one connection for now: %s", error)
                self._try_at = time.monotonic() + TRY_AGAIN_SECONDS
                await engine.close()
                return main
            self._engine = engine
        return self._engine

    async def close(self) -> None:
        """Close what was opened here."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()


def doors(host: AppLike) -> list[Door]:
    """PostgreSQL works on two calls at once: while one is made durable or its answer is read, the
    other goes on. Other engines take one call at a time anyway.
    """
    return [Door(host), SideDoor(host)] if host.engine.name == "postgres" else [Door(host)]
