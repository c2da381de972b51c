"""Headers of every response: browsers must trust nothing."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class SecurityHeaders:
    """Adds the headers. There are none for CORS: other origins may not use the API."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                own = {name for name, _ in headers}
                headers.extend(pair for pair in _RAW if pair[0] not in own)
            await send(message)

        await self.app(scope, receive, send_with_headers)
