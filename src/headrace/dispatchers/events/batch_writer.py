"""Stores received messages over one or two connections, and only then acknowledges them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from headrace.dispatchers.events.adapter import Message, QueueAdapter
from headrace.dispatchers.events.dead_letters import KIND, DeadLetters
from headrace.dispatchers.events.insert import insert_all, insert_traced
from headrace.dispatchers.events.message_parser import ParsedBatch
from headrace.dispatchers.events.receiver import BatchBuffer
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.errors import EngineUnavailable
from headrace.loops.loop import Loop
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.events")

LOOK_AGAIN = 1.0
# After the server refused a second connection.
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


class BatchWriter(Loop):
    """Stores one group of partitions, batch after batch, and acknowledges each while the next one
    is stored.

    While the engine is away the same batch is retried. After `hold_seconds` all messages are
    abandoned, so that another dispatcher can take them, and `engine_available` stays cleared, which
    stops the receiver, until the engine replies.
    """

    name = "storing"

    def __init__(
        self,
        *,
        connection: EngineConnection,
        adapter: QueueAdapter,
        buffer: BatchBuffer,
        group: int,
        engine_available: asyncio.Event,
        hold_seconds: float,
    ) -> None:
        super().__init__()
        self.stored = 0
        self.duplicates = 0
        self.set_aside = 0
        self.unacknowledged = 0
        self._connection = connection
        self._adapter = adapter
        self._letters = DeadLetters(connection.host)
        self._buffer = buffer
        self._group = group
        self._engine_available = engine_available
        self._hold_seconds = hold_seconds
        self._holding: ParsedBatch | None = None
        self._away_since: float | None = None
        self._acknowledging: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """Return how many messages are being stored or retried."""
        return 0 if self._holding is None else len(self._holding.messages)

    async def tick(self) -> float:
        """Store one batch, or check whether the engine is back."""
        # The first checks for all: a second connection is opened only when it is used.
        if self.failures or (self._group == 0 and not self._engine_available.is_set()):
            await self._find_engine()
        if self._holding is None:
            self._holding = await self._buffer.take(self._group, LOOK_AGAIN)
        if self._holding is not None:
            await self._store(self._holding)
            messages, self._holding = self._holding.messages, None
            self._away_since = None
            await self._acknowledge(messages)
        return 0.0

    def failed(self, error: Exception) -> None:
        """Remember since when the engine has been away."""
        if self._away_since is None:
            self._away_since = time.monotonic()

    async def _back_off(self, seconds: float) -> None:
        """Wait after an error. The first writer to reach the engine ends the wait of all."""
        waits = {asyncio.ensure_future(super()._back_off(seconds))}
        if not self._engine_available.is_set():
            waits.add(asyncio.ensure_future(self._engine_available.wait()))  # type: ignore[arg-type]
        try:
            await asyncio.wait(waits, return_when="FIRST_COMPLETED")
        finally:
            for each in waits:
                each.cancel()

    async def stop(self, patience: float = 5.0) -> None:
        """Store what is held if the engine is there, abandon the rest, acknowledge."""
        self._buffer.wake()
        await super().stop(patience)
        try:
            if not self.failures and self._holding is None:
                async with asyncio.timeout(patience):
                    await self._finish()
        except Exception as error:  # what is not stored is abandoned
            log.warning("The last messages could not be stored: %s", error)
        await self._abandon_held()
        await self._connection.close()

    async def _finish(self) -> None:
        while (batch := self._holding or self._buffer.take_now(self._group)) is not None:
            self._holding = batch
            await self._store(batch)
            self._holding = None
            await self._acknowledge(batch.messages)

    async def _store(self, batch: ParsedBatch) -> None:
        engine, tracing = await self._connection.open(), self._connection.host.tracing
        if tracing is None:
            created, unfit = await insert_all(engine, batch)
        else:
            created, unfit = await insert_traced(engine, batch, tracing)
        # Dead letters after jobs: a flood of bad messages must not delay good ones.
        refused = [*batch.refused, *unfit]
        await self._letters.keep(self._adapter.name, refused)
        self.stored += created
        self.duplicates += len(batch.jobs) - created - len(unfit)
        self.set_aside += len(refused)
        for each in refused[:3]:
            log.warning("Set aside a message of %s: %s", each.message.topic, each.reason)
        if len(refused) > 3:
            log.warning("… and %d more; see: headrace dead-letters list", len(refused) - 3)

    async def _find_engine(self) -> None:
        """Set `engine_available` if the engine replies; raise otherwise."""
        away = 0.0 if self._away_since is None else time.monotonic() - self._away_since
        if away > self._hold_seconds:
            if self._engine_available.is_set():
                self._engine_available.clear()
                log.warning("The engine is away: returning unstored messages to the broker")
            # Each time: a delivery that was under way may have arrived after the event was cleared.
            await self._abandon_held()
        await self._connection.close()
        engine = await self._connection.open()
        await engine.record_get(KIND, "is the engine there?")
        if not self._engine_available.is_set():
            self._away_since = None
            self._engine_available.set()

    async def _abandon_held(self) -> None:
        await self._acknowledged()
        while (batch := self._holding or self._buffer.take_now(self._group)) is not None:
            self._holding = None
            try:
                await self._adapter.abandon(batch.messages)
            except Exception as error:  # the broker redelivers them when it misses us
                log.warning(
                    "Cannot return messages to the broker, which redelivers them later: %s: %s",
                    type(error).__name__,
                    error,
                )

    async def _acknowledge(self, messages: Sequence[Message]) -> None:
        await self._acknowledged()
        self._acknowledging = asyncio.create_task(
            self._complete(messages), name="headrace complete"
        )

    async def _acknowledged(self) -> None:
        if self._acknowledging is not None:
            await self._acknowledging
            self._acknowledging = None

    async def _complete(self, messages: Sequence[Message]) -> None:
        try:
            await self._adapter.complete(messages)
        except Exception as error:
            # They are stored; a redelivery is recognised by its key.
            self.unacknowledged += len(messages)
            log.warning(
                "Cannot acknowledge to %s that %d messages are stored: %s: %s",
                self._adapter.name,
                len(messages),
                type(error).__name__,
                error,
            )
