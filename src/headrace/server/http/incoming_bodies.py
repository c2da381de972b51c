"""How requests come in: a body has a deadline, is read to its end where that is possible, and has
one length.
"""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.server.http.problems import Refused

# A body has so many seconds, and one more for each so many bytes that have come.
BODY_SECONDS = 30.0
BYTES_A_SECOND = 16_384
# The rest of a body that was refused is read for so long, as long as it comes, and so much of it. A
# client that is still sending when the connection is closed does not see the answer.
REST_SECONDS, REST_PAUSE = 10.0, 1.0
REST_BYTES = 64 * 1_048_576
# Of one that does not say how long it is: it may never end.
UNTOLD_BYTES = 4 * 1_048_576


class IncomingBodies:
    """Holds the bodies of all requests to these rules."""

    def __init__(self, app: ASGIApp, *, seconds: float = BODY_SECONDS) -> None:
        self.app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy in between may have taken the other one: where a request ends is in doubt.
            refusal = Refused(
                400,
                "malformed-request",
                "the request has both Content-Length and Transfer-Encoding",
                field="Transfer-Encoding",
                remedy="send one of them",
                headers={"Connection": "close"},
            )
            await refusal.response()(scope, receive, send)
            return
        body = _IncomingBody(headers, receive, self._seconds)

        async def send_after_body(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                await body.read_rest()
            await send(message)

        await self.app(scope, body.receive, send_after_body)


class _IncomingBody:
    """The body of one request, as far as it has come."""

    def __init__(self, headers: Headers, receive: Receive, seconds: float) -> None:
        self._headers = headers
        self._receive = receive
        self._seconds = seconds
        self._begun = False
        self._waited = 0.0
        self._bytes = 0
        self._over = False

    async def receive(self) -> Message:
        """Return the next part. Refuses a body that comes too slowly."""
        if self._over:
            return await self._receive()  # that tells when the caller disconnects
        loop = asyncio.get_running_loop()
        self._begun, began = True, loop.time()
        # Only the time spent waiting for it: what is done between two parts is not its sender's.
        left = self._seconds + self._bytes / BYTES_A_SECOND - self._waited
        try:
            async with asyncio.timeout(max(left, 0)):
                message = await self._receive()
                self._waited += loop.time() - began
                return self._noted(message)
        except TimeoutError:
            self._over = True
            raise Refused(
                408,
                "request-timeout",
                f"the body did not come within {self._seconds:g} s and a second for each "
                f"{BYTES_A_SECOND:,} bytes",
                remedy="send it faster, or in parts",
                headers={"Connection": "close"},
            ) from None

    def _noted(self, message: Message) -> Message:
        self._bytes += len(message.get("body", b""))
        self._over = not message.get("more_body", False)
        return message

    async def read_rest(self) -> None:
        """Read what is left of a body that nobody wants, within bounds."""
        length = self._headers.get("content-length", "0")
        announced = int(length) if length.isdecimal() and len(length) < 18 else 0
        # One who asks first has not begun to send.
        asks = "expect" in self._headers and not self._begun
        if self._over or asks or announced > REST_BYTES:
            return
        if not announced and "transfer-encoding" not in self._headers:
            return
        most = self._bytes + (REST_BYTES if announced else UNTOLD_BYTES)
        loop = asyncio.get_running_loop()
        end = loop.time() + REST_SECONDS
        try:
            while not self._over and self._bytes <= most:
                async with asyncio.timeout_at(min(end, loop.time() + REST_PAUSE)):
                    self._noted(await self._receive())
        except TimeoutError:
            self._over = True
