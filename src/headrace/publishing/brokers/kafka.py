"""Apache Kafka, and what speaks its protocol. The event's key is the record's: a partition has the
events of one key in order.
"""

from __future__ import annotations

from typing import Any

from headrace.dispatchers.events.adapters.kafka import tls_context
from headrace.errors import MissingDriver
from headrace.publishing.destinations import KafkaOptions
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import Sender, Trace, named

try:
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'The driver "{error.name}" for Kafka is not installed. '
        'Install it with: pip install "headrace[kafka]"'
    ) from None


class KafkaSender(Sender):
    """Writes records, and waits until all replicas in sync have them."""

    _producer: Any = None

    async def open(self) -> None:
        options: KafkaOptions = self.destination.typed_options
        tls = None
        if "SSL" in options.security_protocol:
            tls = tls_context(
                options.ssl_ca_file, options.ssl_certificate_file, options.ssl_key_file
            )
        self._producer = AIOKafkaProducer(
            bootstrap_servers=options.bootstrap_servers,
            client_id="headrace",
            acks="all",
            # A try ends with its delivery: what the driver would repeat later is out of order.
            request_timeout_ms=round(options.timeout * 1_000),
            security_protocol=options.security_protocol,
            sasl_mechanism=options.sasl_mechanism,
            sasl_plain_username=options.sasl_username,
            sasl_plain_password=options.sasl_password,
            ssl_context=tls,
        )
        await self._producer.start()

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        await self._producer.send_and_wait(
            named(self.destination.typed_options.topic, event),
            body,
            key=None if event.key is None else event.key.encode(),
            headers=[
                ("event-id", event.id.encode()),
                ("event-type", event.type.encode()),
                *((name, value.encode()) for name, value in trace.items()),
            ],
        )

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()
