"""The bounded buffer between receiving and storing, in which small deliveries become batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.message_parser import ParsedBatch

# Messages may be large: at most this much is received ahead, however few they are.
MOST_BYTES = 16 * 1_048_576


class BatchBuffer:
    """Holds parsed messages in groups of partitions, one group for each writer.

    All messages of a partition are in one group, so that they are stored in order; those without a
    partition are in the first. What arrives while a batch is stored becomes the next batch, so a
    slow store makes large batches and a slow broker causes no delay.
    """

    def __init__(self, *, batch_size: int, groups: int = 1) -> None:
        self._batch_size = batch_size
        self._at_once = -(-batch_size // groups)
        self._groups: list[list[ParsedBatch]] = [[] for _ in range(groups)]
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return sum(len(part.messages) for group in self._groups for part in group)

    def shares(self, messages: Sequence[Message]) -> list[Sequence[Message]]:
        """Return the messages of each group, in order."""
        count = len(self._groups)
        if count == 1:
            return [messages]
        shares: list[list[Message]] = [[] for _ in range(count)]
        for message in messages:
            place = message.partition
            number = 0 if place is None else (hash(message.topic) + place) % count
            shares[number].append(message)
        return list(shares)

    def add(self, group: int, part: ParsedBatch) -> None:
        """Add messages, whether there is room or not."""
        self._groups[group].append(part)
        self._changed.set()

    async def room(self) -> None:
        """Wait until a whole batch or less is waiting."""
        while len(self) > self._batch_size or self._bytes() > MOST_BYTES:
            await self._change()

    async def take(self, group: int, timeout: float) -> ParsedBatch | None:
        """Return what waits in a group, about a batch at most; None after `timeout` without any."""
        if not self._groups[group]:
            # Once is enough: who asks will ask again, and may have to stop.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._change()
        return self.take_now(group)

    def take_now(self, group: int) -> ParsedBatch | None:
        """What waits in a tray, about a batch at most."""
        parts = self._groups[group]
        if not parts:
            return None
        batch = parts.pop(0)
        while parts and len(batch.messages) + len(parts[0].messages) <= self._at_once:
            batch.add(parts.pop(0))
        self._changed.set()
        return batch

    def _bytes(self) -> int:
        return sum(
            len(message.body)
            for group in self._groups
            for part in group
            for message in part.messages
        )

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
