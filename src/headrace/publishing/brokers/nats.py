"""NATS JetStream. A stream drops an event whose id it has seen within its duplicate window."""

from __future__ import annotations

from typing import Any

from headrace.errors import MissingDriver
from headrace.publishing.destinations import NatsOptions
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import Sender, Trace, named

try:
    import nats
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'The driver "{error.name}" for NATS is not installed. '
        'Install it with: pip install "headrace[nats]"'
    ) from None


class NatsSender(Sender):
    """Publishes to a subject, and waits until a stream has stored the event."""

    _client: Any = None
    _stream: Any = None

    async def open(self) -> None:
        options: NatsOptions = self.destination.typed_options
        self._client = await nats.connect(
            servers=[each.strip() for each in options.servers.split(",")],
            user=options.user,
            password=options.password,
            token=options.token,
            user_credentials=options.credentials_file,
            connect_timeout=max(1, round(options.timeout)),
            # A delivery that fails is tried again by its job, on a new connection.
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0.2,
            error_cb=_ignore,
        )
        self._stream = self._client.jetstream(timeout=options.timeout)

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        headers = {"Nats-Msg-Id": event.id, "event-type": event.type, **trace}
        subject = named(self.destination.typed_options.subject, event)
        await self._stream.publish(subject, body, headers=headers)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


async def _ignore(_: Exception) -> None:
    """What goes wrong is raised by the call that it concerns."""
