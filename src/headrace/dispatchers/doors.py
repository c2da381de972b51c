"""The ways into the engine: one, or two where that is faster."""

from __future__ import annotations

from headrace.dispatchers.host import Host
from headrace.engine.base import Engine
from headrace.engine.open import open_engine


class Door:
    """A connection to the engine: the App's own."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def open(self) -> Engine:
        """The engine, connected. Doing it again is fine."""
        await self.host.open()
        return self.host.engine

    async def close(self) -> None:
        """Close what was opened here: nothing, the App goes on."""


class SideDoor(Door):
    """A connection of its own, made when it is first used."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._engine: Engine | None = None

    async def open(self) -> Engine:
        """The engine, connected. Doing it again is fine."""
        if self._engine is None:
            engine = open_engine(self.host.settings.url, clock=self.host.clock)
            await engine.open()
            self._engine = engine
        return self._engine

    async def close(self) -> None:
        """Close what was opened here."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()


def doors(host: Host) -> list[Door]:
    """PostgreSQL works on two calls at once: while one is made durable or its answer is read, the
    other goes on. Other engines take one call at a time anyway.
    """
    return [Door(host), SideDoor(host)] if host.engine.name == "postgres" else [Door(host)]
