"""Server-sent events: a response that stays open, with a queue and two tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.monitor.subscribers import Change, Subscriber
from headrace.server.http.problems import Refused
from headrace.server.service import Service

# Often enough for proxies, which close what is silent for a minute or so.
HEARTBEAT = 15.0
# Drop subscribers that have not read for this long.
SEND_TIMEOUT = 60.0
MEDIA_TYPE = "text/event-stream"
RETRY = b"retry: 1000\n\n"
GAP = b"event: gap\ndata: {}\n\n"

Leave = Callable[[], None]
Identify = Callable[[Change], str]
StillWelcome = Callable[[], Awaitable[bool]]


class EventStream(Response):
    """Sends the changes of a subscriber, until it ends or the caller disconnects."""

    def __init__(
        self,
        service: Service,
        subscriber: Subscriber,
        *,
        leave: Leave,
        identify: Identify,
        still_welcome: StillWelcome,
        gap: bool = False,
    ) -> None:
        super().__init__(
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
            media_type=MEDIA_TYPE,
        )
        del self.headers["content-length"]
        self._service = service
        self._subscriber = subscriber
        self._leave = leave
        self._identify = identify
        self._still_welcome = still_welcome
        self._gap = gap

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        subscriber, service = self._subscriber, self._service
        service.subscribers.add(subscriber)
        gone = asyncio.create_task(_until_gone(receive, subscriber), name="headrace stream")
        try:
            await self._send(send, "start", status=200, headers=self.raw_headers)
            await self._body(send, RETRY + (GAP if self._gap else b": following\n\n"))
            while not subscriber.over:
                change = await subscriber.next(HEARTBEAT)
                if change is not None:
                    await self._body(send, self._event(change))
                    # A transport reports its end in the next turn of the loop. Until then each
                    # further event would be written in vain, and logged as a failure.
                    await asyncio.sleep(0)
                    if gone.done():
                        return
                elif not subscriber.over:
                    if not await self._still_welcome():
                        break
                    await self._body(send, b": still here\n\n")
            if subscriber.lost:
                await self._body(send, b": too slow; come back with Last-Event-ID\n\n")
            await self._body(send, b"", more=False)
        except (TimeoutError, OSError):
            return  # the caller does not read any more
        finally:
            gone.cancel()
            service.subscribers.discard(subscriber)
            self._leave()

    def _event(self, change: Change) -> bytes:
        identity = self._identify(change).encode()
        return b"id: %b\nevent: job\ndata: %b\n\n" % (identity, change.data)

    async def _body(self, send: Send, body: bytes, *, more: bool = True) -> None:
        await self._send(send, "body", body=body, more_body=more)

    async def _send(self, send: Send, kind: str, **fields: Any) -> None:
        async with asyncio.timeout(SEND_TIMEOUT):
            await send({"type": f"http.response.{kind}", **fields})


async def _until_gone(receive: Receive, subscriber: Subscriber) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    subscriber.end()


def check_room(service: Service) -> None:
    """Refuse more streams than `most_streams`."""
    if len(service.subscribers) >= service.most_streams:
        raise Refused(
            503,
            "too-many-streams",
            f"{service.most_streams:,} streams are open already",
            remedy="close some, or ask another server process",
            headers={"Retry-After": "10"},
        )
