"""Connections: a request has to begin in time, and there are only so many at once.

Uvicorn waits for the headers of a request for as long as it takes. So whoever opens connections and
sends nothing, or half of a header, would hold them until the process has no files left.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

# Files that a process needs for other things: the engine, logs, artifacts.
OTHER_FILES = 64
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`header_seconds` is how long a connection may take to send the headers of a request, its
    first one or the next; `most` how many connections there may be.
    """

    header_seconds: float = 10.0
    most: int = 10_000

    def fitting(self) -> int:
        """Return how many connections there may be with the files that this process may open."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            return self.most
        return max(1, min(self.most, files - min(OTHER_FILES, files // 2)))


def bounded_protocol(limits: ConnectionLimits) -> type[H11Protocol]:
    """Return a kind of connection that is held to these limits."""
    most = limits.fitting()

    class BoundedConnection(H11Protocol):
        waits_since: float | None = None
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most:
                self._make_room()

        def connection_lost(self, exc: Exception | None) -> None:
            self._go_on()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before and not self.cycle.response_complete:
                self._go_on()

        def on_response_complete(self) -> None:
            self._wait()
            super().on_response_complete()

        def _wait(self) -> None:
            self._go_on()
            self.waits_since = self.loop.time()
            self._deadline = self.loop.call_later(limits.header_seconds, self.transport.close)

        def _go_on(self) -> None:
            self.waits_since = None
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _make_room(self) -> None:
            """Close the one that has been silent for longest; if all are in use, this one."""
            others = [
                each
                for each in self.connections
                if isinstance(each, BoundedConnection)
                and each is not self
                and each.waits_since is not None
                and not each.transport.is_closing()
            ]
            if others:
                min(others, key=lambda each: each.waits_since or 0.0).transport.abort()
            else:
                self.transport.write(BUSY)
                self.transport.close()

    return BoundedConnection
