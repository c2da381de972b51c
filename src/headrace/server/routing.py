"""Routes: each is behind the guard, and says what it takes and returns. Headers of responses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.model.job import Job
from headrace.server.auth.caller import Caller
from headrace.server.auth.guard import Access, admit
from headrace.server.auth.reach import Reach
from headrace.server.http.problems import Refused, invalid
from headrace.server.openapi.registry import JSON, Schema, accepts, answers
from headrace.server.service import Service, service_of
from headrace.suggest import did_you_mean

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Coroutine[Any, Any, Response]])


class Call(Request):
    """A request that the guard has let in."""

    caller: Caller

    @property
    def service(self) -> Service:
        """What all routes share."""
        return service_of(self)

    @property
    def reach(self) -> Reach:
        """What this caller may see, name and change."""
        return Reach(self.service, self.caller)

    def unrestricted(self, what: str) -> Service:
        """The same, if the caller's key is not for some queues only."""
        self.caller.check_unrestricted(what)
        return self.service

    def check_to_come(self, until: datetime | None) -> None:
        """Refuse a time that has passed: the request is fine, and comes too late."""
        if until is not None and until <= self.service.app.clock.utcnow():
            told = f"until {until.isoformat()} has passed; choose a time to come"
            raise Refused(409, "time-passed", told, field="until", value=until.isoformat())

    async def job(self, job_id: str) -> Job:
        """Return the job of this id, if this caller may see it."""
        return self.reach.shown(await self.service.reader.get(job_id))

    async def own_job(self, job_id: str) -> Job:
        """Return the job of this id, if this caller may change it."""
        return self.reach.check_own(await self.job(job_id))

    async def changed(self, action: str, target: str, **detail: Any) -> None:
        """Write to the audit log what this caller has changed."""
        await self.service.audit.changed(self.caller, action, target, **detail)


class Router:
    """Adds routes that need this access. Every route is made by one of these."""

    def __init__(self, access: Access, routes: list[BaseRoute]) -> None:
        self._kind = guarded(access)
        self._routes = routes

    def __call__(
        self,
        place: str,
        summary: str,
        returns: type[msgspec.Struct] | Schema,
        takes: type[msgspec.Struct] | None = None,
        *,
        status: int = 200,
        also: dict[int, type[msgspec.Struct] | Schema] | None = None,
        media_type: str = JSON,
        **described: Any,
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator. `place` is a method and a path, such as "GET /jobs". The rest is as
        for FastAPI: `name` is for the OpenAPI document, where it is not that of the function.
        """
        method, path = place.split(" ", 1)
        described = answers(returns, status, also=also, media_type=media_type) | described
        if takes is not None:
            described |= accepts(takes)

        def add(endpoint: Endpoint) -> Endpoint:
            route = self._kind(path, endpoint, methods=[method], summary=summary, **described)
            self._routes.append(route)
            return endpoint

        return add


@functools.cache
def guarded(access: Access) -> type[APIRoute]:
    """Return a kind of route that needs this access."""

    class Guarded(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()
            known = set(query_names(self.dependant))

            async def guard(request: Request) -> Response:
                call = Call(request.scope, request.receive)
                # Before the body is read.
                call.caller = await admit(call, access)
                if call.scope["query_string"]:
                    check_names(call, known)
                return await handle(call)

            return guard

    Guarded.access = access  # type: ignore[attr-defined]
    return Guarded


def query_names(dependant: Dependant) -> Iterator[str]:
    """The query parameters of a route and of what it depends on."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for each in dependant.dependencies:
        yield from query_names(each)


def check_names(request: Request, known: set[str]) -> None:
    """Refuse unknown parameters: a misspelt filter must not list everything."""
    for name in request.query_params:
        if name not in known:
            raise invalid(f"unknown query parameter; {did_you_mean(name, known)}", field=name[:60])


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


class Prefix:
    """Gives every path its prefix, whether or not a proxy has taken it away."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app = app
        self.root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            path = scope["path"]
            whole = path == self.root or path.startswith(f"{self.root}/")
            path = path if whole else self.root + path
            scope = {**scope, "root_path": self.root, "path": path}
        await self.app(scope, receive, send)
