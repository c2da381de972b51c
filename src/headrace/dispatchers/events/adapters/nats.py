"""NATS JetStream, through a durable pull consumer that all dispatchers share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from headrace.dispatchers.events.adapter import Message, QueueAdapter, driver_for

with driver_for("NATS", "nats"):
    import nats
    from nats.errors import Error as NatsError
    from nats.errors import MsgAlreadyAckdError
    from nats.errors import TimeoutError as NatsTimeout
    from nats.js.api import AckPolicy, ConsumerConfig
    from nats.js.errors import NotFoundError

ASK_SECONDS = 1.0
CONNECT_SECONDS = 10
# The server has to answer within two of these, or the connection counts as dead.
PING_SECONDS = 10.0


class NatsAdapter(QueueAdapter):
    """Pulls from a stream. The consumer is made if it does not exist; the stream has to.

    A message that is not acknowledged within `ack_wait_seconds` is delivered again.
    """

    name = "nats"

    def __init__(
        self,
        *,
        stream: str,
        servers: str | list[str] = "nats://localhost:4222",
        subject: str | None = None,
        durable: str = "headrace",
        batch_size: int = 500,
        ack_wait_seconds: float = 30.0,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        credentials_file: str | None = None,
    ) -> None:
        self._stream = stream
        self._subject = subject
        self._durable = durable
        self._batch_size = batch_size
        self._ack_wait = ack_wait_seconds
        self._settings: dict[str, Any] = {
            "servers": servers,
            "user": user,
            "password": password,
            "token": token,
            "user_credentials": credentials_file,
            "connect_timeout": CONNECT_SECONDS,
            "ping_interval": PING_SECONDS,
            "max_outstanding_pings": 1,
            # The dispatcher connects anew, so that it knows what it has lost.
            "allow_reconnect": False,
            # The driver's 0 means "for ever".
            "max_reconnect_attempts": 1,
            "reconnect_time_wait": 0.2,
            "error_cb": _ignore,
        }
        self._client: Any = None
        self._context: Any = None
        self._subscription: Any = None

    async def connect(self) -> None:
        """Connect and find the consumer, or make it."""
        self._client = await nats.connect(**self._settings)
        self._context = self._client.jetstream()
        try:
            await self._context.consumer_info(self._stream, self._durable)
        except NotFoundError:
            await self._context.add_consumer(
                self._stream,
                ConsumerConfig(
                    durable_name=self._durable,
                    filter_subject=self._subject,
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=self._ack_wait,
                    # Several dispatchers hold several batches each.
                    max_ack_pending=max(20_000, 20 * self._batch_size),
                ),
            )
        self._subscription = await self._context.pull_subscribe_bind(self._durable, self._stream)

    async def disconnect(self) -> None:
        """Leave. The consumer stays for others and for later."""
        client, self._client, self._subscription = self._client, None, None
        if client is not None:
            await client.close()

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        """Messages of the stream in batches."""
        while True:
            if self._subscription is None:
                raise ConnectionError("not connected to NATS; call connect() first")
            try:
                found = await self._subscription.fetch(self._batch_size, timeout=ASK_SECONDS)
            except NatsTimeout:
                if self._client is None or self._client.is_closed:
                    raise ConnectionError("the connection to NATS was lost") from None
                continue
            if found:
                yield [self._message(each) for each in found]

    async def complete(self, messages: Sequence[Message]) -> None:
        """Acknowledge, and wait until the server has seen it."""
        await self._answer(messages, "ack")

    async def abandon(self, messages: Sequence[Message]) -> None:
        """Ask for another delivery."""
        await self._answer(messages, "nak")

    async def lag(self) -> int | None:
        """What waits in the stream for this consumer, and what is not acknowledged."""
        if self._client is None:
            return None
        try:
            info = await self._context.consumer_info(self._stream, self._durable)
        except NatsError:
            return None
        return int(info.num_pending or 0) + int(info.num_ack_pending or 0)

    async def _answer(self, messages: Sequence[Message], verb: str) -> None:
        client = self._client
        ours = [each.receipt for each in messages if each.receipt._client is client]
        if client is None or not ours:
            return  # the server delivers again what an earlier connection left open
        for receipt in ours:
            with contextlib.suppress(MsgAlreadyAckdError):
                await getattr(receipt, verb)()
        await client.flush()

    def _message(self, received: Any) -> Message:
        metadata = received.metadata
        sequence = metadata.sequence.stream
        return Message(
            body=received.data,
            topic=received.subject,
            key=f"nats:{metadata.stream}:{sequence}",
            offset=sequence,
            sent_at=metadata.timestamp.timestamp(),
            receipt=received,
            headers=received.headers or None,
        )


async def _ignore(_: Exception) -> None:
    """What goes wrong is raised by the call that it concerns."""
