"""From an App to a FastAPI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.app import App
from headrace.server.auth.redact import DEFAULT
from headrace.server.bundles import add_bundles
from headrace.server.http import problems
from headrace.server.openapi.document import document
from headrace.server.routes import admin, cluster, job, jobs, workflows
from headrace.server.service import MEBIBYTE, Service, ServicePerLoop
from headrace.version import __version__

# Fixed paths before those with a job's id in the same place.
ROUTES = (*jobs.routes, *job.routes, *cluster.routes, *admin.routes, *workflows.routes)

# Headers of every response: browsers must trust nothing.
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


def create(
    app: App,
    *,
    redact: Sequence[str] = DEFAULT,
    rate: float = 2_000.0,
    upload_limit: int = 32 * MEBIBYTE,
    user_argument: str | None = "user_id",
    most_streams: int = 2_000,
) -> FastAPI:
    """Return the HTTP API over an App, to be served alone or mounted in another application.

    `redact` names fields whose values are never shown. `rate` is how many requests a second a key
    may make, unless it has a rate of its own. A key with a user fills in, and is held to, the
    argument `user_argument` of tasks that have it.
    """
    service = ServicePerLoop(
        partial(
            Service,
            app,
            redact=redact,
            rate=rate,
            upload_limit=upload_limit,
            user_argument=user_argument,
            most_streams=most_streams,
        )
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.get().close()

    api = FastAPI(
        title="Headrace",
        version=__version__,
        # FastAPI's pages have no key, and load scripts from elsewhere.
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    api.state.headrace = service
    problems.install(api)
    api.add_middleware(SecurityHeaders)
    api.router.routes.extend(ROUTES)
    add_bundles(api, app)

    def openapi() -> dict[str, Any]:
        # Tasks may be registered at any time, so it is made when it is asked for.
        return document(api, app)

    api.openapi = openapi  # type: ignore[method-assign]
    return api
