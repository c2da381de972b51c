"""Between reading and storing: a bounded place where messages that came in small pieces gather."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.message_parser import Sorted

# Messages may be large: more than this is not taken ahead, however few they are.
MOST_BYTES = 16 * 1_048_576


class Inbox:
    """Holds sorted messages in trays, one for each who stores them.

    All messages of one partition lie in one tray, so that they are stored in its order; those
    without a partition lie in the first. Whatever comes while a batch is being stored becomes the
    next batch, so a slow store makes large batches and a slow broker costs no delay.
    """

    def __init__(self, *, batch_size: int, trays: int = 1) -> None:
        self._batch_size = batch_size
        self._at_once = -(-batch_size // trays)
        self._trays: list[list[Sorted]] = [[] for _ in range(trays)]
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return sum(len(part.messages) for tray in self._trays for part in tray)

    def shares(self, messages: Sequence[Message]) -> list[Sequence[Message]]:
        """The messages for each tray, in their order."""
        count = len(self._trays)
        if count == 1:
            return [messages]
        shares: list[list[Message]] = [[] for _ in range(count)]
        for message in messages:
            place = message.partition
            number = 0 if place is None else (hash(message.topic) + place) % count
            shares[number].append(message)
        return list(shares)

    def add(self, tray: int, part: Sorted) -> None:
        """Add messages, whether there is room or not."""
        self._trays[tray].append(part)
        self._changed.set()

    async def room(self) -> None:
        """Wait until a whole batch or less is waiting."""
        while len(self) > self._batch_size or self._bytes() > MOST_BYTES:
            await self._change()

    async def take(self, tray: int, timeout: float) -> Sorted | None:
        """What waits in a tray, about a batch at most; None if nothing came soon."""
        if not self._trays[tray]:
            # Once is enough: who asks will ask again, and may have to stop.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._change()
        return self.take_now(tray)

    def take_now(self, tray: int) -> Sorted | None:
        """What waits in a tray, about a batch at most."""
        parts = self._trays[tray]
        if not parts:
            return None
        batch = parts.pop(0)
        while parts and len(batch.messages) + len(parts[0].messages) <= self._at_once:
            batch.add(parts.pop(0))
        self._changed.set()
        return batch

    def _bytes(self) -> int:
        return sum(
            len(message.body) for tray in self._trays for part in tray for message in part.messages
        )

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
