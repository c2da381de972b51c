"""Amazon SQS, and services that speak its protocol. Only FIFO queues have an order: by group."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from typing import Any

from headrace.errors import MissingDriver
from headrace.publishing.destinations import Destination, SqsOptions
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import Sender, Trace

try:
    from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
    from aiobotocore.session import get_session  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'The driver "{error.name}" for SQS is not installed. '
        'Install it with: pip install "headrace[sqs]"'
    ) from None

# What a message group may be called, and how long it may be, is narrower than a key.
LONGEST_GROUP = 128


class SqsSender(Sender):
    """Sends messages. Credentials come from where AWS tools look for them, if not given."""

    def __init__(self, destination: Destination) -> None:
        super().__init__(destination)
        self._stack = AsyncExitStack()
        self._client: Any = None

    async def open(self) -> None:
        options: SqsOptions = self.destination.typed_options
        context = get_session().create_client(
            "sqs",
            region_name=options.region,
            endpoint_url=options.endpoint_url,
            aws_access_key_id=options.access_key_id,
            aws_secret_access_key=options.secret_access_key,
            config=AioConfig(
                connect_timeout=options.timeout,
                read_timeout=options.timeout,
                retries={"mode": "standard", "max_attempts": 1},
            ),
        )
        self._client = await self._stack.enter_async_context(context)

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        options: SqsOptions = self.destination.typed_options
        attributes = {"event-id": event.id, "event-type": event.type, **trace}
        fifo: dict[str, str] = {}
        if options.queue_url.endswith(".fifo"):
            fifo = {"MessageGroupId": _group(event), "MessageDeduplicationId": event.id}
        await self._client.send_message(
            QueueUrl=options.queue_url,
            MessageBody=body.decode(),
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
            },
            **fifo,
        )

    async def close(self) -> None:
        await self._stack.aclose()


def _group(event: PublishedEvent) -> str:
    """Return the group of an event: those of one key stay in order, others do not wait."""
    if event.key is None:
        return event.id
    if event.key.isascii() and event.key.isprintable() and len(event.key) <= LONGEST_GROUP:
        return event.key.replace(" ", "_")
    return hashlib.sha256(event.key.encode()).hexdigest()
