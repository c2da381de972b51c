"""The OpenAPI document: routes from FastAPI, bodies and responses from our own types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from headrace.server.bundles.route import openapi_access
from headrace.server.bundles.schemas import bundle_schemas
from headrace.server.http.problems import MEDIA_TYPE
from headrace.server.openapi.bodies import add_bodies
from headrace.server.openapi.registry import for_generators, reference, schemas
from headrace.task import Task
from headrace.version import __version__
from headrace.workflows.model import Workflow

_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "hr_<id>_<secret>"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


_SERVER = frozenset(("healthz", "readyz", "metrics", "openapi.json"))


def document(
    api: FastAPI,
    tasks: Mapping[str, Task[..., Any]],
    workflows: Callable[[], list[Workflow]],
    shows: Callable[[BaseRoute], bool] = lambda _: True,
) -> dict[str, Any]:
    """Return the document for these tasks and workflows, and for the routes that it `shows`."""
    routes = [route for route in api.routes if shows(route)]
    made = get_openapi(
        title="Headrace",
        version=__version__,
        description="Background jobs: enqueue, follow, change.",
        routes=routes,
    )
    # What FastAPI has found in routes of bundles, without its own errors.
    others = made.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        others.pop(name, None)
    found = for_generators(
        others | bundle_schemas(routes) | add_bodies(schemas(), tasks, workflows)
    )
    made["components"] = {"schemas": found, "securitySchemes": _SECURITY}
    made["info"]["contact"] = {"name": "Whoever runs this server"}
    made["servers"] = [{"url": "/"}]
    for route in routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                _complete(made["paths"][route.path_format][method.lower()], route)
    operations = [each for path in made["paths"].values() for each in path.values()]
    tags = {tag: None for each in operations for tag in each.get("tags", ())}
    made["tags"] = [{"name": tag} for tag in tags]
    return made


def _subject(path: str) -> str:
    """Return what a path is about: its first word that names something."""
    words = [word for word in path.split("/") if word and word not in ("api", "v2")]
    return "server" if words[0] in _SERVER else words[0]


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    access = openapi_access(route)
    operation["x-access"] = access
    # Pages that show the document group it by these.
    operation.setdefault("tags", [_subject(route.path_format)])
    keys: list[dict[str, Any]] = [{name: []} for name in _SECURITY]
    operation["security"] = {"open": [], "local": [{}, *keys]}.get(access, keys)
    # FastAPI's own errors are problems here, too.
    operation["responses"].pop("422", None)
    problem = {MEDIA_TYPE: {"schema": reference("Problem")}}
    operation["responses"]["default"] = {"description": "A problem.", "content": problem}
