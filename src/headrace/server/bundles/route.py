"""From a route that a bundle declares to one that is guarded, limited and audited."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, get_args

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headrace.bundles.registry import LoadedBundle
from headrace.bundles.request import CALLER, NOTES, SETUP, BundleRequest
from headrace.bundles.routes import Route, RouteScope
from headrace.errors import InvalidSetting
from headrace.server.auth.caller import Caller
from headrace.server.auth.guard import admit
from headrace.server.bundles.endpoint import Served
from headrace.server.http.body import check_length, media_type
from headrace.server.http.problems import Refused, forbidden
from headrace.server.http.uploads import bounded_receive
from headrace.server.routing import Handler, check_names, query_names
from headrace.server.service import Service, service_of

SCOPES = get_args(RouteScope)
FORM = "multipart/form-data"
# Where the dashboard says who has signed in: no request can.
VISITOR = "headrace visitor"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_PARAMETER = re.compile(r"\{[^{}]*\}")


class BundleRoute(APIRoute):
    """A route of a bundle. Its handler runs only for callers with the scope."""

    loaded: LoadedBundle
    declared: Route
    served: Served | None = None

    @property
    def access(self) -> RouteScope | None:
        """Return the scope that a caller needs."""
        return self.declared.scope

    def is_for(self, caller: Caller) -> bool:
        """Return whether this caller may use the queues of the bundle."""
        return all(map(caller.may_touch, _queues(self.loaded)))

    def get_route_handler(self) -> Handler:
        """Return the handler, behind the guard."""
        handle = super().get_route_handler()
        known = set(query_names(self.dependant))

        async def guard(request: Request) -> Response:
            caller = await self._caller(request)
            _check(self.loaded, caller)
            if request.scope["query_string"]:
                check_names(request, known)
            service = service_of(request)
            limit = self._limit(request, service)
            check_length(request, limit)
            request.scope.update({CALLER: caller, SETUP: self.loaded.setup})
            bounded = BundleRequest(request.scope, bounded_receive(request, limit))
            try:
                response = await handle(bounded)
            except HTTPException as error:
                # FastAPI calls every error while it reads a form a malformed request.
                if isinstance(error.__cause__, Refused):
                    raise error.__cause__ from None
                raise
            if self.declared.changes and response.status_code < 400:
                await self._write_down(request, service, caller)
            return response

        return guard

    async def _caller(self, request: Request) -> Caller:
        visitor: Caller | None = request.scope.get(VISITOR)
        only_reads = self.declared.scope == "read" and not self.declared.changes
        if visitor is not None and only_reads and request.method in ("GET", "HEAD"):
            return visitor
        # The scope is there: without one the route was refused.
        return await admit(request, self.declared.scope or "admin")

    def _limit(self, request: Request, service: Service) -> int:
        if self.declared.limit is not None:
            return self.declared.limit
        form = media_type(request.headers.get("content-type", "")) == FORM
        return service.body_limits.form if form else service.body_limits.request

    async def _write_down(self, request: Request, service: Service, caller: Caller) -> None:
        notes = request.scope.get(NOTES, {"target": None, "detail": {}})
        path = request.scope.get("path_params", {})
        target = notes["target"] or next(map(str, path.values()), request.url.path)
        action = f"{self.loaded.bundle.name}.{self.declared.action}"
        await service.audit.changed(caller, action, target, **notes["detail"])


def bundle_route(loaded: LoadedBundle, route: Route) -> BundleRoute:
    """Return the route as it is served. Raises `InvalidSetting`, which names it, if it has no
    scope, or is outside of the bundle's path.
    """
    where = f'bundle "{loaded.bundle.name}": {route.method} {loaded.bundle.prefix}{route.path}'
    if route.scope not in SCOPES:
        has = "has no scope" if route.scope is None else f"has the unknown scope {route.scope!r}"
        raise InvalidSetting(f"{where} {has}; say who may use it: scope=" + _either(SCOPES))
    if route.method not in _METHODS:
        raise InvalidSetting(f"{where} has an unknown method; use one of {', '.join(_METHODS)}")
    fixed = _PARAMETER.sub("x", route.path)
    if (route.path and not route.path.startswith("/")) or ".." in fixed or "//" in fixed:
        raise InvalidSetting(
            f"{where} is outside of {loaded.bundle.prefix}/: a path begins with one / and has no .."
        )
    served = Served(route, where)
    options = {
        "summary": _summary(route),
        "tags": [loaded.bundle.name],
        **served.described(loaded.bundle.name),
        **route.options,
    }
    # Read when the route makes its handler, which its constructor does.
    made = type("BundleRoute", (BundleRoute,), {"loaded": loaded, "declared": route})
    try:
        found: BundleRoute = made(
            f"{loaded.bundle.prefix}{route.path}",
            served.endpoint,
            methods=[route.method],
            status_code=route.status,
            response_model=None,
            **options,
        )
    except (TypeError, AssertionError, RuntimeError) as error:
        raise InvalidSetting(f"{where}: {error}") from error
    found.served = served
    return found


def _check(loaded: LoadedBundle, caller: Caller) -> None:
    name = loaded.bundle.name
    if loaded.failure is not None:
        raise Refused(
            503,
            "bundle-out-of-service",
            f"bundle {name} is out of service; the server's log says why",
            remedy="see: headrace bundles",
        )
    if not all(map(caller.may_touch, _queues(loaded))):
        raise forbidden(
            f"this key is for some queues only, and bundle {name} has tasks in others",
            "use a key for all of them",
        )


def _queues(loaded: LoadedBundle) -> set[str]:
    tasks = loaded.setup.app.tasks
    return {tasks[task].policy.queue for task in loaded.tasks if task in tasks}


def _summary(route: Route) -> str:
    text = (route.endpoint.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return text or getattr(route.endpoint, "__name__", route.action).replace("_", " ").capitalize()


def _either(words: Iterable[str]) -> str:
    return " or ".join(f'"{word}"' for word in words)


def openapi_access(route: Any) -> str:
    """Return the access that a route needs, for the API document."""
    if isinstance(route, BundleRoute):
        return route.access or "admin"
    access: str = getattr(type(route), "access", "open")
    return access
