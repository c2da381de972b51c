"""Server-sent events: read, and followed over lost connections."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from headrace.client.errors import UnexpectedAnswer
from headrace.client.request import LONGEST_WAIT, Request, pause
from headrace.errors import EngineUnavailable

if TYPE_CHECKING:
    from headrace.client.transport import Transport

MEDIA_TYPE = "text/event-stream"
# Servers send a comment now and then. When even that stays out, the connection is dead.
SILENCE = 60.0
LONGEST_EVENT = 64 * 1_048_576

# Only these end a line. JSON may contain others, such as U+2028.
_LINE_END = re.compile(rb"\r\n|\n|\r")


# An id that a server sends before the first event.
NO_EVENT = ""


class Event(msgspec.Struct, frozen=True):
    """One event. `id` is what a new connection continues after."""

    kind: str
    data: bytes
    id: str | None = None


async def follow(transport: Transport, request: Request, *, retries: int) -> AsyncIterator[Event]:
    """Yield events, over as many connections as it takes.

    Gives up with EngineUnavailable after `retries` new connections in a row that were lost at
    once. An event that the server sends again after a new connection is left out.
    """
    last: str | None = None
    failures = 0
    lifetime = transport.lifetime
    while True:
        began = time.monotonic()
        headers = {"Accept": MEDIA_TYPE} | ({} if last is None else {"Last-Event-ID": last})
        trouble = EngineUnavailable(f"the server ends {request.path} again and again")
        try:
            async with transport.stream(request, silence=SILENCE, headers=headers) as response:
                if response.status_code == 204:
                    return
                kind = response.headers.get("Content-Type", "")
                if not kind.startswith(MEDIA_TYPE):
                    raise UnexpectedAnswer(
                        f"{request.path} was answered with {kind or 'no content type'} instead of "
                        "events; is API_URL that of a Headrace server?"
                    )
                async for event in parse(response.aiter_bytes()):
                    if event.kind == NO_EVENT:
                        last = event.id
                        continue
                    failures = 0
                    if event.id is None or event.id != last:
                        last = event.id or last
                        yield event
        except EngineUnavailable as error:
            trouble = error
        if time.monotonic() - began > LONGEST_WAIT:
            failures = 0  # proxies cut off streams on which nothing has happened for a while
        lifetime.check()
        if failures >= retries:
            raise trouble
        await lifetime.pause(pause(failures))
        failures += 1


async def parse(chunks: AsyncIterable[bytes]) -> AsyncIterator[Event]:
    """Return the events in a stream of bytes, without one that is cut off at the end."""
    kind, size = "message", 0
    data: list[bytes] = []
    identity: str | None = None
    told: str | None = None
    async for line in _lines(chunks):
        if not line:
            if data:
                yield Event(kind, b"\n".join(data), identity)
            elif identity != told:
                yield Event(NO_EVENT, b"", identity)
            told = identity
            kind, data, size = "message", [], 0
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"event":
                kind = value.decode("utf-8", "replace")
            case b"data":
                size += len(value)
                if size > LONGEST_EVENT:
                    raise UnexpectedAnswer(f"an event has more than {LONGEST_EVENT:,} bytes")
                data.append(value)
            case b"id" if b"\0" not in value:
                identity = value.decode("utf-8", "replace")


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    parts: list[bytes] = []
    size = 0
    after_return = False
    async for chunk in chunks:
        # A line end may be cut in two by the network.
        rest = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
        after_return = chunk.endswith(b"\r") if chunk else after_return
        *whole, rest = _LINE_END.split(rest)
        for line in whole:
            yield b"".join([*parts, line])
            parts, size = [], 0
        if rest:
            parts.append(rest)
            size += len(rest)
            if size > LONGEST_EVENT:
                raise UnexpectedAnswer(f"an event has more than {LONGEST_EVENT:,} bytes")
