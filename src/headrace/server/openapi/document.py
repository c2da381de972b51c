"""The OpenAPI document: routes from FastAPI, bodies and responses from our own types."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from headrace.app import App
from headrace.server.bundles.route import openapi_access
from headrace.server.bundles.schemas import bundle_schemas
from headrace.server.http.problems import MEDIA_TYPE
from headrace.server.openapi.bodies import add_bodies
from headrace.server.openapi.registry import reference, schemas
from headrace.version import __version__

_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "hr_<id>_<secret>"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def document(api: FastAPI, app: App) -> dict[str, Any]:
    """Return the whole document, for the tasks that are registered now."""
    made = get_openapi(
        title="Headrace",
        version=__version__,
        description="Background jobs: enqueue, follow, change.",
        routes=api.routes,
    )
    # What FastAPI has found in routes of bundles, without its own errors.
    others = made.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        others.pop(name, None)
    found = others | bundle_schemas(api) | add_bodies(schemas(), app)
    made["components"] = {"schemas": found, "securitySchemes": _SECURITY}
    for route in api.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                _complete(made["paths"][route.path_format][method.lower()], route)
    return made


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    access = openapi_access(route)
    operation["x-access"] = access
    keys: list[dict[str, Any]] = [{name: []} for name in _SECURITY]
    operation["security"] = {"open": [], "local": [{}, *keys]}.get(access, keys)
    # FastAPI's own errors are problems here, too.
    operation["responses"].pop("422", None)
    problem = {MEDIA_TYPE: {"schema": reference("Problem")}}
    operation["responses"]["default"] = {"description": "A problem.", "content": problem}
