"""Taking messages from the broker, for as long as there is room and the engine is there.

In the buffer between receiving and storing, small deliveries become batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

from headrace.dispatchers.events.adapter import BrokerUnavailable, Message, QueueAdapter
from headrace.dispatchers.events.message_parser import MessageParser, ParsedBatch
from headrace.loops.loop import Loop

log = logging.getLogger("headrace.events")

# After so many seconds without trouble a connection counts as good.
QUIET = 1.0
PATIENCE = 10.0
# Messages may be large: at most this much is received ahead, however few they are.
MOST_BYTES = 16 * 1_048_576
# These are told with their traceback: it is the adapter that has to be mended, not the broker.
MISTAKES = (TypeError, AttributeError, NameError, LookupError, AssertionError, ImportError)


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


class Receiver(Loop):
    """Connects, receives, checks, and hands on; connects again after trouble with the broker.

    While `engine_available` is not set, nothing more is taken from the broker.
    """

    name = "receiving"

    def __init__(
        self,
        *,
        adapter: QueueAdapter,
        parser: MessageParser,
        buffer: BatchBuffer,
        engine_available: asyncio.Event,
    ) -> None:
        super().__init__()
        self.adapter = adapter
        self.received = 0
        self.connected = False
        self._parser = parser
        self._buffer = buffer
        self._engine_available = engine_available
        self._stream: AsyncIterator[Sequence[Message]] | None = None
        self._next: asyncio.Task[Sequence[Message]] | None = None

    async def tick(self) -> float:
        """Receive one batch, or find that the broker is quiet."""
        if self.connected and self.adapter.sends_ahead and not self._engine_available.is_set():
            # What the broker has sent, and would send again as soon as it is given back, is for
            # others now.
            await self.leave()
        if self._next is None:
            if not await _set_within(self._engine_available, QUIET):
                return 0.0
            self._next = asyncio.create_task(self._receive(), name="headrace receive")
        await asyncio.wait({self._next}, timeout=QUIET)
        if not self._next.done():
            return 0.0
        task, self._next = self._next, None
        try:
            messages = task.result()
        except MISTAKES:
            await self.leave()
            raise
        except Exception as error:
            await self.leave()
            raise BrokerUnavailable(
                f"{self.adapter.name}: {type(error).__name__}: {error}"
            ) from error
        self._take_in(messages)
        await self._buffer.room()
        return 0.0

    async def stop(self, patience: float = 0.0) -> None:
        """Take no more. What was handed out is still to be completed, so the connection stays."""
        await super().stop(patience)
        task = self._next
        if task is not None and task.done() and not task.cancelled() and not task.exception():
            self._take_in(task.result())
        await self._drop()

    async def leave(self) -> None:
        """Disconnect, also if the broker does not answer."""
        await self._drop()
        self.connected = False
        try:
            async with asyncio.timeout(PATIENCE):
                await self.adapter.disconnect()
        except Exception as error:  # it is gone either way
            log.warning("Leaving %s: %s: %s", self.adapter.name, type(error).__name__, error)

    def _take_in(self, messages: Sequence[Message]) -> None:
        self.received += len(messages)
        for group, share in enumerate(self._buffer.shares(messages)):
            if share:
                self._buffer.add(group, self._parser.parse(share))

    async def _receive(self) -> Sequence[Message]:
        if self._stream is None:
            await self.adapter.connect()
            self.connected = True
            log.info("Connected to %s", self.adapter.name)
            self._stream = aiter(self.adapter.receive())
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            raise ConnectionError(f"{self.adapter.name} ended the stream of messages") from None

    async def _drop(self) -> None:
        """Stop waiting for messages. One that arrives at this moment is delivered again."""
        task, self._next = self._next, None
        while task is not None and not task.done():
            task.cancel()
            # Drivers have been seen to swallow a cancellation that meets an answer.
            await asyncio.wait({task}, timeout=0.1)
        if task is not None and not task.cancelled():
            task.exception()  # it is known by now, or of no interest
        stream, self._stream = self._stream, None
        if stream is not None and hasattr(stream, "aclose"):
            with contextlib.suppress(Exception):
                await stream.aclose()


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    if not event.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
    return event.is_set()
