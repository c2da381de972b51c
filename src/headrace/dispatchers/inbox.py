"""Between reading and storing: a bounded place where messages that came in small pieces gather."""

from __future__ import annotations

import asyncio

from headrace.dispatchers.intake import Sorted

# Messages may be large: more than this is not taken ahead, however few they are.
MOST_BYTES = 16 * 1_048_576


class Inbox:
    """Holds sorted messages. `put` waits while it is full, `take` while it is empty.

    Whatever comes while a batch is being stored becomes the next batch, so a slow store makes
    large batches and a slow broker costs no delay.
    """

    def __init__(self, *, batch_size: int) -> None:
        self._batch_size = batch_size
        self._parts: list[Sorted] = []
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return sum(len(part.messages) for part in self._parts)

    async def put(self, part: Sorted) -> None:
        """Add messages, once a whole batch or less is waiting."""
        try:
            while len(self) > self._batch_size or self._bytes() > MOST_BYTES:
                await self._change()
        finally:
            # Also if the wait was cut short: who stops has to know of every message in hand.
            self.add(part)

    def add(self, part: Sorted) -> None:
        """Add messages, whether there is room or not."""
        self._parts.append(part)
        self._changed.set()

    async def take(self, timeout: float) -> Sorted | None:
        """What waits, about a batch at most; None if nothing came in time."""
        if not self._parts:
            try:
                async with asyncio.timeout(timeout):
                    await self._change()
            except TimeoutError:
                return None
        return self.take_now()

    def take_now(self) -> Sorted | None:
        """What waits, about a batch at most."""
        if not self._parts:
            return None
        batch = self._parts.pop(0)
        while (
            self._parts and len(batch.messages) + len(self._parts[0].messages) <= self._batch_size
        ):
            batch.add(self._parts.pop(0))
        self._changed.set()
        return batch

    def _bytes(self) -> int:
        return sum(len(message.body) for part in self._parts for message in part.messages)

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
