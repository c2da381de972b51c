"""Requests as spans, below that of the caller (`traceparent`). Only used while traces are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.tracing.carrier import checked

if TYPE_CHECKING:
    from headrace.tracing.tracer import Tracing

# Asked every few seconds by machines: nobody looks for these.
LEFT_OUT = ("/healthz", "/readyz", "/metrics")


class TracedRequests:
    """Makes a span for each request. Its name has the route, never the path: that has ids in it."""

    def __init__(self, app: ASGIApp, *, tracing: Tracing) -> None:
        self.app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        headers = checked(Headers(scope=scope)) if scope["type"] == "http" else {}
        if (
            scope["type"] != "http"
            or scope["path"].endswith(LEFT_OUT)
            or self._tracing.is_inside(headers)
        ):
            await self.app(scope, receive, send)
            return
        method = scope["method"]
        about = {"http.request.method": method, "url.scheme": scope.get("scheme", "http")}
        with self._tracing.serving(headers, about) as span:

            async def send_and_note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route = getattr(scope.get("route"), "path", None)
                    if route is not None:
                        span.update_name(f"{method} {route}")
                        span.set_attribute("http.route", route)
                    self._tracing.answered(span, message["status"])
                await send(message)

            await self.app(scope, receive, send_and_note)
