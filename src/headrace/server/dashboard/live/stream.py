"""`GET /ui/stream`: the parts of one page that have changed, as server-sent events."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Hashable

import msgspec
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from headrace.server.dashboard.live.views import LookAt, Parts, Reader, Views
from headrace.server.dashboard.render import with_token
from headrace.server.dashboard.session.guard import Visitor, still_welcome
from headrace.server.http.sse import HEARTBEAT, OpenStream, until_gone
from headrace.server.service import Service

# How often it is checked that the reader may still look. Both caches behind it last a second.
CHECK_EVERY = 0.5
_STATE = re.compile(r"[0-9a-f]{24}")


class LiveStream(OpenStream):
    """Sends what changes in a view to one reader, the newest only."""

    def __init__(
        self, service: Service, visitor: Visitor, key: Hashable, look: LookAt, *, state: str
    ) -> None:
        super().__init__(functools.partial(still_welcome, service, visitor))
        self._service = service
        self._visitor = visitor
        self._key = key
        self._look = look
        self._reader = Reader(state)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader, service = self._reader, self._service
        views = service.part(Views)
        service.subscribers.add(reader)
        views.join(self._key, self._look, reader)
        gone = asyncio.create_task(until_gone(receive, reader), name="headrace dashboard stream")
        try:
            await self._send(send, "start", status=200, headers=self.raw_headers)
            await self._body(send, self._hello())
            await self._follow(send)
            await self._body(send, b"", more=False)
        except (TimeoutError, OSError):
            return  # the browser does not read any more
        finally:
            gone.cancel()
            service.subscribers.discard(reader)
            views.leave(self._key, reader)

    async def _follow(self, send: Send) -> None:
        reader, loop = self._reader, asyncio.get_running_loop()
        sent_at = checked_at = loop.time()
        while not reader.ended:
            parts = await reader.next(CHECK_EVERY)
            # Before anything is sent: what has changed may not be for this reader any more.
            if loop.time() - checked_at >= CHECK_EVERY:
                if not await self._welcome():
                    await self._body(send, b"event: leave\ndata: {}\n\n")
                    return
                checked_at = loop.time()
            if parts:
                await self._body(send, self._event(parts))
                sent_at = loop.time()
            elif loop.time() - sent_at >= HEARTBEAT:
                await self._body(send, b": still here\n\n")
                sent_at = loop.time()

    def _hello(self) -> bytes:
        return b"retry: 1000\nid: %b\nevent: hello\ndata: %b\n\n" % (
            self._reader.state.encode(),
            msgspec.json.encode(
                {"token": self._visitor.token, "now": self._service.app.clock.utcnow()}
            ),
        )

    def _event(self, parts: Parts) -> bytes:
        data = {name: with_token(html, self._visitor.token) for name, html in parts.items()}
        return b"id: %b\nevent: parts\ndata: %b\n\n" % (
            self._reader.state.encode(),
            msgspec.json.encode(data),
        )


def known_state(request: Request) -> str:
    """Return the state that the browser has already: of the page, or of the stream before."""
    found = request.headers.get("last-event-id") or request.query_params.get("state", "")
    return found if _STATE.fullmatch(found) else "new"
