"""The HTTP routes that a bundle adds, as it declares them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Endpoint = TypeVar("Endpoint", bound=Callable[..., Awaitable[Any]])
RouteScope = Literal["read", "write", "admin"]


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `path` is below the bundle's prefix."""

    method: str
    path: str
    endpoint: Callable[..., Awaitable[Any]]
    scope: RouteScope | None
    changes: bool
    """Whether each success is written to the audit log."""
    action: str
    """What the audit log calls it."""
    status: int = 200
    limit: int | None = None
    """The most bytes of a request; None is the limit of the server."""
    options: dict[str, Any] = field(default_factory=dict)


class Routes:
    """Routes, declared as with FastAPI's router; parameters of paths and queries work as there.

    A parameter that is a msgspec.Struct is read from the JSON body. What a route returns (a Struct,
    plain data, a `File`, or a response of Starlette) is sent with the fields redacted that the
    server hides.
    Every route needs a scope. A route that changes something is written to the audit log: all but
    GET and HEAD, unless `changes` says otherwise.
    """

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def get(
        self, path: str, *, scope: RouteScope | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Add a route for GET. The options are those of `add`."""
        return self._adding("GET", path, scope, options)

    def head(
        self, path: str, *, scope: RouteScope | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Add a route for HEAD."""
        return self._adding("HEAD", path, scope, options)

    def post(
        self, path: str, *, scope: RouteScope | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Add a route for POST."""
        return self._adding("POST", path, scope, options)

    def put(
        self, path: str, *, scope: RouteScope | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Add a route for PUT."""
        return self._adding("PUT", path, scope, options)

    def patch(
        self, path: str, *, scope: RouteScope | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Add a route for PATCH."""
        return self._adding("PATCH", path, scope, options)

    def delete(
        self, path: str, *, scope: RouteScope | None = None, **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Add a route for DELETE."""
        return self._adding("DELETE", path, scope, options)

    def add(
        self,
        method: str,
        path: str,
        endpoint: Callable[..., Awaitable[Any]],
        *,
        scope: RouteScope | None = None,
        status: int = 200,
        changes: bool | None = None,
        action: str | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> Route:
        """Add a route and return it. `status` is that of its success; `limit` the most bytes of a
        request; other options (`summary`, `responses`, …) are those of FastAPI's routes.
        """
        route = Route(
            method=method.upper(),
            path=path,
            endpoint=endpoint,
            scope=scope,
            changes=method.upper() not in ("GET", "HEAD") if changes is None else changes,
            action=action or str(getattr(endpoint, "__name__", "request")),
            status=status,
            limit=limit,
            options=options,
        )
        self.routes.append(route)
        return route

    def _adding(
        self, method: str, path: str, scope: RouteScope | None, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        def add(endpoint: Endpoint) -> Endpoint:
            self.add(method, path, endpoint, scope=scope, **options)
            return endpoint

        return add
