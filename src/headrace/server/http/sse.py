"""Server-sent events: a response that stays open, with a queue and two tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.monitor.changes.subscribers import Change, Subscriber
from headrace.server.http.problems import Refused
from headrace.server.service import Endable, Service

# Often enough for proxies, which close what is silent for a minute or so.
HEARTBEAT = 15.0
# How often it is checked that the caller's key is still valid, as it was CHECK_AGE before. Together
# less than the two seconds after which a key is refused everywhere.
CHECK_EVERY, CHECK_AGE = 1.0, 0.9
# Drop subscribers that have not read for this long.
SEND_TIMEOUT = 60.0
# Changes that are there at once are sent at once, up to about so many bytes.
SENT_BYTES = 65_536
MEDIA_TYPE = "text/event-stream"
RETRY = b"retry: 1000\n\n"
FOLLOWING = b": following\n\n"

Leave = Callable[[], None]
Identify = Callable[[Change], str]
StillWelcome = Callable[[], Awaitable[bool]]


class OpenStream(Response):
    """A response that stays open. `_still_welcome` says whether its caller may go on reading."""

    def __init__(self, still_welcome: StillWelcome) -> None:
        super().__init__(
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
            media_type=MEDIA_TYPE,
        )
        del self.headers["content-length"]
        self._still_welcome = still_welcome

    async def _welcome(self) -> bool:
        try:
            return await self._still_welcome()
        except HeadraceError:
            # While the engine is away nobody can tell; nothing new is seen in the meantime either.
            return True

    async def _body(self, send: Send, body: bytes, *, more: bool = True) -> None:
        await self._send(send, "body", body=body, more_body=more)

    async def _send(self, send: Send, kind: str, **fields: Any) -> None:
        async with asyncio.timeout(SEND_TIMEOUT):
            await send({"type": f"http.response.{kind}", **fields})


class EventStream(OpenStream):
    """Sends the changes of a subscriber, until it ends or the caller disconnects."""

    def __init__(
        self,
        service: Service,
        subscriber: Subscriber,
        *,
        leave: Leave,
        identify: Identify,
        still_welcome: StillWelcome,
        data: Callable[[Change], bytes],
        opening: bytes = b"",
    ) -> None:
        super().__init__(still_welcome)
        self._service = service
        self._subscriber = subscriber
        self._leave = leave
        self._identify = identify
        self._data = data
        self._opening = opening

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        subscriber, service = self._subscriber, self._service
        service.subscribers.add(subscriber)
        gone = asyncio.create_task(until_gone(receive, subscriber), name="headrace stream")
        try:
            await self._send(send, "start", status=200, headers=self.raw_headers)
            await self._body(send, RETRY + self._opening + FOLLOWING)
            loop = asyncio.get_running_loop()
            sent_at = checked_at = loop.time()
            while not subscriber.over:
                change = await subscriber.next(min(CHECK_EVERY, HEARTBEAT))
                # By the clock, before anything is sent, however much there is to send.
                if loop.time() - checked_at >= CHECK_EVERY:
                    if not await self._welcome():
                        break
                    checked_at = loop.time()
                if change is not None:
                    await self._body(send, self._events(change))
                    # A transport reports its end in the next turn of the loop. Until then each
                    # further event would be written in vain, and logged as a failure.
                    await asyncio.sleep(0)
                    if gone.done():
                        return
                    sent_at = loop.time()
                elif not subscriber.over and loop.time() - sent_at >= HEARTBEAT:
                    await self._body(send, b": still here\n\n")
                    sent_at = loop.time()
            await self._body(send, b"", more=False)
        except (TimeoutError, OSError):
            return  # the caller does not read any more
        finally:
            gone.cancel()
            service.subscribers.discard(subscriber)
            self._leave()

    def _events(self, first: Change) -> bytes:
        """This change, and those that wait behind it as far as they fit."""
        text = bytearray()
        change: Change | None = first
        while change is not None:
            identity = self._identify(change).encode()
            text += gap(identity) if change.job is None else _job(identity, self._data(change))
            change = self._subscriber.next_now() if len(text) < SENT_BYTES else None
        return bytes(text)


def _job(identity: bytes, data: bytes) -> bytes:
    return b"id: %b\nevent: job\ndata: %b\n\n" % (identity, data)


def gap(identity: bytes) -> bytes:
    """Say that changes were missed; what comes after it is complete."""
    return b"id: %b\nevent: gap\ndata: {}\n\n" % identity


async def until_gone(receive: Receive, subscriber: Endable) -> None:
    """End a stream when its caller has disconnected."""
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
