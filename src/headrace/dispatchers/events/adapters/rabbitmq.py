"""RabbitMQ, as one of the competing consumers of a queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.dispatchers.events.adapter import Message, QueueAdapter, driver_for

with driver_for("RabbitMQ", "rabbitmq"):
    import aio_pika
    from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

if TYPE_CHECKING:
    from aio_pika.abc import (
        AbstractChannel,
        AbstractConnection,
        AbstractIncomingMessage,
        AbstractQueue,
    )

ASK_SECONDS = 1.0
CONNECT_SECONDS = 10.0


class RabbitmqAdapter(QueueAdapter):
    """Consumes from a queue that exists.

    RabbitMQ has no name of its own for a message, so publishers have to set `message_id`: by it a
    redelivery is recognised. A message without one is set aside, unless `require_message_id` is
    false; then a redelivery may make a second job.
    """

    name = "rabbitmq"
    sends_ahead = True

    def __init__(
        self,
        *,
        queue: str,
        url: str = "amqp://guest:guest@localhost:5672/",
        batch_size: int = 200,
        require_message_id: bool = True,
    ) -> None:
        self._url = url
        self._queue_name = queue
        self._batch_size = batch_size
        self._require_message_id = require_message_id
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._queue: AbstractQueue | None = None
        self._consumer = ""
        self._waiting: deque[AbstractIncomingMessage] = deque()
        self._arrived = asyncio.Event()
        self._unanswered = 0

    async def connect(self) -> None:
        """Connect and begin to consume; the broker sends ahead what two batches hold."""
        self._waiting.clear()
        self._arrived = asyncio.Event()
        self._unanswered = 0
        self._connection = await aio_pika.connect(self._url, timeout=CONNECT_SECONDS)
        self._channel = await self._connection.channel(publisher_confirms=False)
        self._channel.close_callbacks.add(self._lost)
        await self._channel.set_qos(prefetch_count=min(2 * self._batch_size, 65_535))
        self._queue = await self._channel.declare_queue(self._queue_name, passive=True)
        self._consumer = await self._queue.consume(self._take)

    async def disconnect(self) -> None:
        """Leave. The broker gives what is not answered to others."""
        connection, self._connection = self._connection, None
        self._channel = self._queue = None
        self._waiting.clear()
        if connection is not None:
            await connection.close()

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        """What has arrived, up to a batch."""
        while True:
            await self._check()
            if not self._waiting:
                self._arrived.clear()
                try:
                    async with asyncio.timeout(ASK_SECONDS):
                        await self._arrived.wait()
                except TimeoutError:
                    continue
            count = min(len(self._waiting), self._batch_size)
            if count:
                self._unanswered += count
                yield [self._message(self._waiting.popleft()) for _ in range(count)]

    async def complete(self, messages: Sequence[Message]) -> None:
        """Acknowledge the last of these, and with it those before."""
        last = self._last(messages)
        if last is not None:
            await last.ack(multiple=True)

    async def abandon(self, messages: Sequence[Message]) -> None:
        """Put these back into the queue. What came before them is answered already."""
        last = self._last(messages)
        if last is not None:
            await last.nack(multiple=True, requeue=True)

    async def lag(self) -> int | None:
        """What waits in the queue, and what is here and not acknowledged."""
        if self._channel is None:
            return None
        try:
            queue = await self._channel.declare_queue(self._queue_name, passive=True)
        except (AMQPError, ChannelInvalidStateError):
            return None
        waiting = int(queue.declaration_result.message_count or 0)
        return waiting + len(self._waiting) + self._unanswered

    async def _check(self) -> None:
        if self._channel is None or self._channel.is_closed:
            raise ConnectionError("the connection to RabbitMQ was lost")
        driver: Any = await self._channel.get_underlay_channel()
        if self._consumer not in driver.consumers:
            raise ConnectionError(
                f'RabbitMQ ended the consumer: is queue "{self._queue_name}" there?'
            )

    def _lost(self, *_: object) -> None:
        self._arrived.set()

    async def _take(self, message: AbstractIncomingMessage) -> None:
        self._waiting.append(message)
        self._arrived.set()

    def _last(self, messages: Sequence[Message]) -> Any:
        """The last of these that this connection has still to answer."""
        channel = self._channel
        if channel is None or channel.is_closed:
            return None  # the broker gives them to others
        ours = [each for each in messages if each.receipt[0] is channel]
        self._unanswered -= len(ours)
        return ours[-1].receipt[1] if ours else None

    def _message(self, received: AbstractIncomingMessage) -> Message:
        known = received.message_id
        missing = known is None and self._require_message_id
        return Message(
            body=received.body,
            topic=self._queue_name,
            key=None if known is None else f"rabbitmq:{self._queue_name}:{known}",
            offset=known,
            sent_at=None if received.timestamp is None else received.timestamp.timestamp(),
            fault=_NO_ID if missing else None,
            receipt=(self._channel, received),
            headers=received.headers or None,
        )


_NO_ID = (
    "the message has no message_id, so a redelivery could not be told from another message; set "
    "message_id in the publisher, or the option require_message_id to false"
)
