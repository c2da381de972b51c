"""A small HTTP responder: GET and HEAD of a few paths, one request for each connection.

Bounds, whatever is sent: a connection ends after `DEADLINE` seconds, a request has at most
`MOST_BYTES`, and there are at most `MOST_CONNECTIONS`; one more takes the place of the one that has
been open for longest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast

log = logging.getLogger("headrace.probes")

DEADLINE = 5.0
MOST_BYTES = 8_192
MOST_CONNECTIONS = 32


class ProbeResponse(NamedTuple):
    """What is sent back."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    allow: str | None = None


Handler = Callable[[], Awaitable[ProbeResponse]]


class Responder:
    """Makes a connection for each client, and closes all of them at the end."""

    def __init__(self, routes: Mapping[str, Handler]) -> None:
        self.routes = routes
        # In the order in which they were opened.
        self.connections: dict[Connection, None] = {}

    def __call__(self) -> Connection:
        return Connection(self)

    def opened(self, connection: Connection) -> None:
        """Make room for one more."""
        if len(self.connections) >= MOST_CONNECTIONS:
            next(iter(self.connections)).end()
        self.connections[connection] = None

    def close(self) -> None:
        """End all connections."""
        for connection in list(self.connections):
            connection.end()


class Connection(asyncio.Protocol):
    """One request and its answer."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = asyncio.get_running_loop().call_later(DEADLINE, self.end)
        self._responder.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._answering is not None:
            self._answering.cancel()
        self._responder.connections.pop(self, None)

    def end(self) -> None:
        """Close it now, whatever it waits for."""
        self._responder.connections.pop(self, None)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._answering is not None:
            return  # a body, or another request: this connection has one
        self._received += data[: MOST_BYTES + 1 - len(self._received)]
        head, complete, _ = bytes(self._received).partition(b"\r\n\r\n")
        if complete or len(self._received) > MOST_BYTES:
            line = head.split(b"\r\n", 1)[0] if complete else None
            self._answering = asyncio.ensure_future(self._answer(line))

    async def _answer(self, line: bytes | None) -> None:
        method, answer = await self._find(line)
        if self._transport is None or self._transport.is_closing():
            return
        head = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *([f"Allow: {answer.allow}"] if answer.allow else []),
        ]
        body = b"" if method == "HEAD" else answer.body
        self._transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self._transport.close()

    async def _find(self, line: bytes | None) -> tuple[str, ProbeResponse]:
        if line is None:
            return "", _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        parts = line.split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1.") or not line.isascii():
            return "", _plain(HTTPStatus.BAD_REQUEST)
        method, target = parts[0].decode(), parts[1].decode()
        handler = self._responder.routes.get(target.partition("?")[0])
        if handler is None:
            return method, _plain(HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            return method, _plain(HTTPStatus.METHOD_NOT_ALLOWED)._replace(allow="GET, HEAD")
        try:
            return method, await handler()
        except Exception:  # a fault here must not look like a process that is gone
            log.exception("%s could not be answered", target)
            return method, _plain(HTTPStatus.INTERNAL_SERVER_ERROR)


def _plain(status: HTTPStatus) -> ProbeResponse:
    return ProbeResponse(status, f"{status.phrase}\n".encode(), "text/plain; charset=utf-8")
