"""Storing what came from the broker, and only then telling the broker."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from headrace.dispatchers.events.adapter import Message, QueueAdapter
from headrace.dispatchers.events.batch_buffer import Inbox
from headrace.dispatchers.events.connections import Door
from headrace.dispatchers.events.dead_letters import KIND, DeadLetters
from headrace.dispatchers.events.insert import insert_all
from headrace.dispatchers.events.message_parser import Sorted
from headrace.loop import Loop

log = logging.getLogger("headrace.events")

LOOK_AGAIN = 1.0


class Storer(Loop):
    """Stores what lies in one tray, batch after batch. While one is stored, the broker is told
    about the last.

    While the engine is away the same batch is tried again and again, and the gate lets the reader
    take little more. After `hold_seconds` everything is given back to the broker, so that another
    dispatcher may have better luck, and the gate stays closed until the engine answers.
    """

    name = "storing"

    def __init__(
        self,
        *,
        door: Door,
        adapter: QueueAdapter,
        inbox: Inbox,
        tray: int,
        gate: asyncio.Event,
        hold_seconds: float,
    ) -> None:
        super().__init__()
        self.stored = 0
        self.duplicates = 0
        self.set_aside = 0
        self.untold = 0
        self._door = door
        self._adapter = adapter
        self._letters = DeadLetters(door.host)
        self._inbox = inbox
        self._tray = tray
        self._gate = gate
        self._hold_seconds = hold_seconds
        self._holding: Sorted | None = None
        self._away_since: float | None = None
        self._telling: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """How many messages are being stored, or will be tried again."""
        return 0 if self._holding is None else len(self._holding.messages)

    async def tick(self) -> float:
        """Store one batch, or see whether the engine is back."""
        # The first looks for all: a second connection is not made before there is use for it.
        if self.failures or (self._tray == 0 and not self._gate.is_set()):
            await self._find_engine()
        if self._holding is None:
            self._holding = await self._inbox.take(self._tray, LOOK_AGAIN)
        if self._holding is not None:
            await self._store(self._holding)
            messages, self._holding = self._holding.messages, None
            self._away_since = None
            await self._tell(messages)
        return 0.0

    def failed(self, error: Exception) -> None:
        """Remember since when the engine is away."""
        if self._away_since is None:
            self._away_since = time.monotonic()

    async def _back_off(self, seconds: float) -> None:
        """Wait out an error. Who finds the engine and opens the gate ends the wait of all."""
        waits = {asyncio.ensure_future(super()._back_off(seconds))}
        if not self._gate.is_set():
            waits.add(asyncio.ensure_future(self._gate.wait()))  # type: ignore[arg-type]
        try:
            await asyncio.wait(waits, return_when="FIRST_COMPLETED")
        finally:
            for each in waits:
                each.cancel()

    async def stop(self, patience: float = 5.0) -> None:
        """Store what is held if the engine is there, give back the rest, tell the broker."""
        self._inbox.wake()
        await super().stop(patience)
        try:
            if not self.failures and self._holding is None:
                async with asyncio.timeout(patience):
                    await self._finish()
        except Exception as error:  # what is not stored goes back
            log.warning("The last messages could not be stored: %s", error)
        await self._give_back()
        await self._door.close()

    async def _finish(self) -> None:
        while (batch := self._holding or self._inbox.take_now(self._tray)) is not None:
            self._holding = batch
            await self._store(batch)
            self._holding = None
            await self._tell(batch.messages)

    async def _store(self, batch: Sorted) -> None:
        created, unfit = await insert_all(await self._door.open(), batch)
        # Letters after jobs: a flood of bad messages must not delay the good ones beside them.
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
        """Raises while the engine is away; opens the gate when it is there."""
        away = 0.0 if self._away_since is None else time.monotonic() - self._away_since
        if away > self._hold_seconds:
            if self._gate.is_set():
                self._gate.clear()
                log.warning("The engine is away: messages in hand go back to the broker")
            # Each time: what the reader was waiting for may have come after the gate was closed.
            await self._give_back()
        await self._door.close()
        engine = await self._door.open()
        await engine.record_get(KIND, "is the engine there?")
        if not self._gate.is_set():
            self._away_since = None
            self._gate.set()

    async def _give_back(self) -> None:
        await self._told()
        while (batch := self._holding or self._inbox.take_now(self._tray)) is not None:
            self._holding = None
            try:
                await self._adapter.abandon(batch.messages)
            except Exception as error:  # they come back when the broker misses us
                log.warning("Giving messages back: %s: %s", type(error).__name__, error)

    async def _tell(self, messages: Sequence[Message]) -> None:
        await self._told()
        self._telling = asyncio.create_task(self._complete(messages), name="headrace complete")

    async def _told(self) -> None:
        if self._telling is not None:
            await self._telling
            self._telling = None

    async def _complete(self, messages: Sequence[Message]) -> None:
        try:
            await self._adapter.complete(messages)
        except Exception as error:
            # They are stored; if they come again, their keys tell that they did.
            self.untold += len(messages)
            log.warning(
                "%s was not told that %d messages are done: %s: %s",
                self._adapter.name,
                len(messages),
                type(error).__name__,
                error,
            )
