"""RabbitMQ. A queue has events in the order in which they were published to it."""

from __future__ import annotations

from typing import Any

from headrace.errors import MissingDriver
from headrace.publishing.destinations import RabbitmqOptions
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import Sender, Trace, named

try:
    import aio_pika
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'The driver "{error.name}" for RabbitMQ is not installed. '
        'Install it with: pip install "headrace[rabbitmq]"'
    ) from None


class RabbitmqSender(Sender):
    """Publishes to an exchange that exists, and waits for the broker's confirmation. An event that
    no queue takes is an error.
    """

    _connection: Any = None
    _exchange: Any = None

    async def open(self) -> None:
        options: RabbitmqOptions = self.destination.typed_options
        self._connection = await aio_pika.connect(options.url, timeout=options.timeout)
        channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
        self._exchange = (
            await channel.get_exchange(options.exchange, ensure=True)
            if options.exchange
            else channel.default_exchange
        )

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        options: RabbitmqOptions = self.destination.typed_options
        message = aio_pika.Message(
            body,
            message_id=event.id,
            type=event.type,
            timestamp=event.time,
            content_type="application/json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            headers={**trace} if event.key is None else {"event-key": event.key, **trace},
        )
        await self._exchange.publish(message, named(options.routing_key, event), mandatory=True)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
