"""Connections over which messages are stored: one, or two where that is faster."""

from __future__ import annotations

import logging
import time

from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.errors import EngineUnavailable
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

TRY_AGAIN_SECONDS = 60.0


class EngineConnection:
    """The App's own connection to the engine."""

    def __init__(self, host: AppLike) -> None:
        self.host = host

    async def open(self) -> Engine:
        """Return the connected engine. May be called again."""
        await self.host.open()
        return self.host.engine

    async def close(self) -> None:
        """Do nothing: the connection is the App's."""


class ExtraConnection(EngineConnection):
    """A connection of its own, opened at the first use.

    If the server allows no more connections, the App's own is used, which is slower.
    """

    def __init__(self, host: AppLike) -> None:
        super().__init__(host)
        self._engine: Engine | None = None
        self._try_at = 0.0

    async def open(self) -> Engine:
        """Return the connected engine. May be called again."""
        if self._engine is None:
            main = await super().open()
            if time.monotonic() < self._try_at:
                return main
            settings = self.host.settings
            engine = open_engine(settings.url, clock=self.host.clock, migrate=settings.migrate)
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
        """Close the extra connection."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()


def engine_connections(host: AppLike) -> list[EngineConnection]:
    """Return two connections for PostgreSQL: while one call is made durable or its reply is read,
    the other goes on. Other engines take one call at a time.
    """
    return (
        [EngineConnection(host), ExtraConnection(host)]
        if host.engine.name == "postgres"
        else [EngineConnection(host)]
    )
