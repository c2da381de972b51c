"""Redis Streams (also Valkey), as one consumer of a consumer group."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from headrace.dispatchers.events.adapter import Message, QueueAdapter, driver_for
from headrace.errors import InvalidSetting
from headrace.model.ids import new_id
from headrace.tracing.carrier import FIELDS, TRACEPARENT

with driver_for("Redis Streams", "redis-streams"):
    import redis.asyncio as redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import ResponseError

ASK_MS = 1_000
# A server that has not answered for so long is gone, whatever the connection looks like. It is much
# longer than a read waits for entries.
SILENT_SECONDS = 15.0
_TRACEPARENT = TRACEPARENT.encode()
# A consumer that has nothing and was not heard of for so long belonged to a dispatcher that died.
FORGET_AFTER_MS = 86_400_000


class RedisStreamsAdapter(QueueAdapter):
    """Reads entries with a `body` field. Those of a consumer that died are taken over.

    An entry that was handed out and not acknowledged for `claim_after_seconds` is taken over by
    whichever dispatcher looks first. The stream keeps acknowledged entries, unless
    `delete_completed` says otherwise.
    """

    name = "redis"

    def __init__(
        self,
        *,
        streams: list[str],
        url: str = "redis://localhost:6379/0",
        group: str = "headrace",
        field: str = "body",
        batch_size: int = 1_000,
        claim_after_seconds: float = 60.0,
        delete_completed: bool = False,
    ) -> None:
        if not streams:
            raise InvalidSetting("streams must name at least one stream, got none")
        if claim_after_seconds < 1:
            raise InvalidSetting(
                f"claim_after_seconds must be at least 1, got {claim_after_seconds}"
            )
        self._url = url
        self._streams = streams
        self._group = group
        self._field = field.encode()
        self._batch_size = batch_size
        self._claim_after = round(claim_after_seconds * 1_000)
        self._delete_completed = delete_completed
        self._consumer = f"{socket.gethostname()}:{os.getpid()}:{new_id()[-6:]}"
        self._client: Any = None
        self._look_at = 0.0

    async def connect(self) -> None:
        """Connect, and make the group where it does not exist; it begins with the oldest entry."""
        self._client = redis.Redis.from_url(
            self._url,
            socket_connect_timeout=10,
            socket_timeout=SILENT_SECONDS,
            # The dispatcher connects anew, so that it knows what it has lost.
            retry=Retry(NoBackoff(), 0),
        )
        self._look_at = 0.0
        for stream in self._streams:
            try:
                await self._client.xgroup_create(stream, self._group, id="0", mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
            for each in await self._client.xinfo_consumers(stream, self._group):
                if each["pending"] == 0 and each["idle"] > FORGET_AFTER_MS:
                    await self._client.xgroup_delconsumer(stream, self._group, each["name"])

    async def disconnect(self) -> None:
        """Leave. A consumer that holds entries stays, or they would be lost with it."""
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(redis.RedisError, OSError):
            for stream in self._streams:
                for each in await client.xinfo_consumers(stream, self._group):
                    if each["name"] == self._consumer.encode() and each["pending"] == 0:
                        await client.xgroup_delconsumer(stream, self._group, self._consumer)
        await client.aclose()

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        """New entries, and now and then those that somebody else left behind."""
        while True:
            client = self._connected()
            if time.monotonic() >= self._look_at:
                left = await self._take_over(client)
                if left:
                    yield left
                    continue
                self._look_at = time.monotonic() + self._claim_after / 4_000
            found = await client.xreadgroup(
                self._group,
                self._consumer,
                dict.fromkeys(self._streams, ">"),
                count=self._batch_size,
                block=ASK_MS,
            )
            for stream, entries in found.items() if isinstance(found, dict) else found:
                # The newer protocol answers with one more list around the entries.
                several = entries[0] if entries and _nested(entries) else entries
                if several:
                    yield self._messages(stream, several)

    async def complete(self, messages: Sequence[Message]) -> None:
        """Acknowledge."""
        client = self._client
        if client is None:
            return  # somebody else takes them over
        for stream, ids in _by_stream(messages).items():
            await client.xack(stream, self._group, *ids)
            if self._delete_completed:
                await client.xdel(stream, *ids)

    async def abandon(self, messages: Sequence[Message]) -> None:
        """Make these look long forgotten, so that the next who looks takes them over."""
        client = self._client
        if client is None:
            return  # somebody else takes them over
        for stream, ids in _by_stream(messages).items():
            await client.xclaim(
                stream,
                self._group,
                self._consumer,
                min_idle_time=0,
                message_ids=ids,
                idle=self._claim_after,
                justid=True,
            )
        self._look_at = 0.0

    async def lag(self) -> int | None:
        """What was not handed out yet, and what was and is not acknowledged."""
        if self._client is None:
            return None
        total = 0
        for stream in self._streams:
            for each in await self._client.xinfo_groups(stream):
                if each["name"] == self._group.encode():
                    if each.get("lag") is None:
                        return None
                    total += each["lag"] + each["pending"]
        return total

    async def _take_over(self, client: Any) -> list[Message]:
        for stream in self._streams:
            answer = await client.xautoclaim(
                stream,
                self._group,
                self._consumer,
                min_idle_time=self._claim_after,
                count=self._batch_size,
            )
            entries = [entry for entry in answer[1] if entry[1] is not None]
            if entries:
                return self._messages(stream.encode(), entries)
        return []

    def _messages(self, stream: bytes, entries: Sequence[Any]) -> list[Message]:
        topic = stream.decode("utf-8", "backslashreplace")
        return [self._message(topic, entry.decode(), fields) for entry, fields in entries]

    def _message(self, topic: str, entry: str, fields: dict[bytes, bytes]) -> Message:
        body = fields.get(self._field)
        fault = None
        if body is None:
            named = {name.decode("utf-8", "backslashreplace"): fields[name] for name in fields}
            body = msgspec.json.encode(
                {name: value.decode("utf-8", "backslashreplace") for name, value in named.items()}
            )
            fault = (
                f'the entry has no field "{self._field.decode()}" but {sorted(named)}; '
                "add the message under that name, or set the option field"
            )
        return Message(
            body=body,
            topic=topic,
            key=f"redis:{topic}:{entry}",
            offset=entry,
            sent_at=int(entry.partition("-")[0]) / 1_000,
            fault=fault,
            headers=_headers(fields) if _TRACEPARENT in fields else None,
        )

    def _connected(self) -> Any:
        if self._client is None:
            raise ConnectionError("not connected to Redis; call connect() first")
        return self._client


def _headers(fields: dict[bytes, bytes]) -> dict[str, bytes]:
    """Entries have no headers: their trace context is in fields of these names."""
    return {name: fields[name.encode()] for name in FIELDS if name.encode() in fields}


def _nested(entries: Sequence[Any]) -> bool:
    return isinstance(entries[0], list)


def _by_stream(messages: Sequence[Message]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for message in messages:
        found.setdefault(message.topic, []).append(message.offset)
    return found
