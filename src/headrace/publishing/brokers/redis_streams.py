"""Redis Streams (also Valkey). A stream has events in the order in which they were added."""

from __future__ import annotations

from typing import Any

from headrace.errors import MissingDriver
from headrace.publishing.destinations import RedisStreamsOptions
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import Sender, Trace, named

try:
    import redis.asyncio as redis
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'The driver "{error.name}" for Redis Streams is not installed. '
        'Install it with: pip install "headrace[redis-streams]"'
    ) from None


class RedisStreamsSender(Sender):
    """Adds entries with the fields `id`, `type`, `key` and `body`; with traces, `traceparent`."""

    _client: Any = None

    async def open(self) -> None:
        options: RedisStreamsOptions = self.destination.typed_options
        self._client = redis.Redis.from_url(
            options.url, socket_connect_timeout=options.timeout, socket_timeout=options.timeout
        )
        await self._client.ping()

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        options: RedisStreamsOptions = self.destination.typed_options
        fields = {"id": event.id, "type": event.type, "key": event.key or "", "body": body, **trace}
        await self._client.xadd(
            named(options.stream, event), fields, maxlen=options.max_length, approximate=True
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
