"""Counts what a server does for those who look: store calls, bytes and milliseconds.

Everything that a request sets off runs in that request's context, also the look that is shared by
all who have the same view. So what a worker in the same process asks of the store is not counted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import headrace
from headrace import app_lifecycle
from headrace.engine.open import open_engine
from headrace.server import app as factory

# Below this is what belongs to the measuring; it is not counted.
PREFIX = "/bench"
BARE = f"{PREFIX}/bare"
BARE_LIST = f"{PREFIX}/list"
COUNTS = f"{PREFIX}/counts"
BARE_PAGE = "<!doctype html><html lang=en><title>Bare</title><p>A page with nothing on it.</p>"
# As long as a list of ten thousand jobs.
BARE_ROWS = "<!doctype html><html lang=en><title>Bare</title>" + 10_000 * "<p>A row.</p>"

_for_reader: ContextVar[bool] = ContextVar("for_reader", default=False)


class Meter:
    """What was counted since the server started. Milliseconds are by path and query."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.bytes = 0
        self.times: dict[str, list[float]] = {}

    def as_dict(self) -> dict[str, Any]:
        return {"calls": self.calls.total(), "bytes": self.bytes, "times": self.times}


class MeteredEngine:
    """Passes every verb on, and counts those that a request has set off."""

    def __init__(self, engine: Any, meter: Meter) -> None:
        self._engine = engine
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            if _for_reader.get():
                self._meter.calls[name] += 1
            return found(*arguments, **named)

        # Looked up once, so that counting costs next to nothing.
        setattr(self, name, counted)
        return counted


class MeteredRequests:
    """Counts bytes of answers, and how long each took until its end."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            self._meter.bytes += len(message.get("body", b""))
            await send(message)

        token, began = _for_reader.set(True), time.perf_counter()
        try:
            await self._app(scope, receive, counted)
        finally:
            _for_reader.reset(token)
            query = scope["query_string"].decode()
            path = scope["path"] + (f"?{query}" if query else "")
            milliseconds = 1_000 * (time.perf_counter() - began)
            self._meter.times.setdefault(path, []).append(milliseconds)


def install(meter: Meter) -> None:
    """Have every App and every server that this process makes from now on counted."""
    create = factory.create

    def opened(*arguments: Any, **named: Any) -> Any:
        return MeteredEngine(open_engine(*arguments, **named), meter)

    def created(app: headrace.App, **options: Any) -> FastAPI:
        api = create(app, **options)
        for path, endpoint in (
            (BARE, _bare),
            (BARE_LIST, _bare_list),
            (COUNTS, _counts(meter)),
        ):
            api.router.routes.insert(0, Route(path, endpoint))
        api.add_middleware(MeteredRequests, meter=meter)
        return api

    app_lifecycle.open_engine = opened  # type: ignore[attr-defined]
    factory.create = created


async def _bare(_: Request) -> Response:
    return HTMLResponse(BARE_PAGE)


async def _bare_list(_: Request) -> Response:
    return HTMLResponse(BARE_ROWS)


def _counts(meter: Meter) -> Callable[[Request], Any]:
    async def counts(_: Request) -> Response:
        return JSONResponse(meter.as_dict())

    return counts
