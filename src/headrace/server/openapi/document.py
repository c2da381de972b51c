"""The OpenAPI document: routes from FastAPI, bodies and answers from our own structs."""

from __future__ import annotations

import functools
import zoneinfo
from types import ModuleType
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from headrace.api_types import job, requests, responses
from headrace.api_types.job import JobBody, JobList
from headrace.api_types.responses import AuditPage, DeadLetterPage, DispatcherView
from headrace.app import App
from headrace.errors import InvalidInput, MissingDriver
from headrace.model.artifact import Artifact
from headrace.model.job import PRIORITY_LIMIT
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.server.http.problems import MEDIA_TYPE
from headrace.server.openapi.task_schemas import (
    argument_schema,
    request_schema,
    schedule_schema,
    upload_schemas,
)
from headrace.server.openapi.workflow_schemas import execute_schema
from headrace.task.task import MOST_RETRIES
from headrace.version import __version__
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView

REFERENCES = "#/components/schemas/{name}"
_PRIORITY = {
    "anyOf": [
        {"type": "integer", "minimum": -PRIORITY_LIMIT, "maximum": PRIORITY_LIMIT},
        {"type": "null"},
    ]
}
_RETRIES = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MOST_RETRIES}, {"type": "null"}]}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "hr_<id>_<secret>"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


# Routes describe pages by `page(…)`.
PAGES = (JobList, DeadLetterPage, AuditPage)


def _structs(*modules: ModuleType) -> list[type[msgspec.Struct]]:
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, msgspec.Struct)
        and kind.__module__ == module.__name__
        and kind not in PAGES
    ]


RESPONSES: tuple[type[msgspec.Struct], ...] = (
    *_structs(responses, job),
    Artifact,
    QueueView,
    LaneView,
    Worker,
    Workflow,
    RunView,
)
SHOWN = (*_structs(requests), *RESPONSES)


def document(api: FastAPI, app: App) -> dict[str, Any]:
    """The whole document, for the tasks that are registered now."""
    made = get_openapi(
        title="Headrace",
        version=__version__,
        description="Background jobs: hand in, follow, steer.",
        routes=api.routes,
    )
    schemas = _schemas(app)
    made["components"] = {"schemas": schemas, "securitySchemes": _SECURITY}
    for route in api.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                _complete(made["paths"][route.path_format][method.lower()], route)
    return made


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    access = getattr(type(route), "access", "open")
    operation["x-access"] = access
    keys: list[dict[str, Any]] = [{name: []} for name in _SECURITY]
    operation["security"] = {"open": [], "local": [{}, *keys]}.get(access, keys)
    # Also those that FastAPI adds for its own errors are problems here.
    operation["responses"].pop("422", None)
    problem = {MEDIA_TYPE: {"schema": {"$ref": REFERENCES.format(name="Problem")}}}
    operation["responses"]["default"] = {"description": "A problem.", "content": problem}


def _schemas(app: App) -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(SHOWN, ref_template=REFERENCES)
    schemas["Job"] = schemas.pop("JobBody") | {"title": "Job"}
    schemas["BatchAnswer"]["properties"]["jobs"]["items"] = {"$ref": REFERENCES.format(name="Job")}
    options = {
        name: schema
        for name, schema in schemas["JobRequest"]["properties"].items()
        if name not in ("task", "args")
    }
    options |= {"priority": _PRIORITY, "retries": _RETRIES}
    variants: list[dict[str, Any]] = []
    uploads: list[dict[str, Any]] = []
    schedules: list[dict[str, Any]] = []
    fields = schemas["ScheduleRequest"]["properties"] | {
        "expression": _expression(),
        "tz": {"enum": _zones(), "default": "UTC"},
    }
    for name in sorted(app.tasks):
        arguments, definitions = argument_schema(app.tasks[name], REFERENCES)
        schemas |= definitions
        variants.append(request_schema(app.tasks[name], arguments, options))
        uploads += upload_schemas(app.tasks[name], arguments, options)
        schedules.append(schedule_schema(app.tasks[name], arguments, fields))
    if variants:
        schemas["JobRequest"] = {"oneOf": variants}
        schemas["ScheduleRequest"] = {"oneOf": schedules}
    nothing: list[Any] = [False]
    runs = schemas["ExecuteRequest"]["properties"]
    known = [execute_schema(workflow, runs) for workflow in _workflows(app)]
    schemas["ExecuteRequest"] = {"oneOf": known} if known else {"anyOf": nothing}
    schemas["JobUpload"] = uploads[0] if len(uploads) == 1 else {"anyOf": uploads or nothing}
    schemas["FilterRequest"]["minProperties"] = 1
    for kind in RESPONSES:
        # Every field is sent, also where clients have a default for older servers.
        if not kind.__struct_config__.omit_defaults and kind is not DispatcherView:
            _require_all(schemas["Job" if kind is JobBody else kind.__name__])
    schemas["Problem"]["required"] = ["type", "title", "status", "detail"]
    return schemas


def _require_all(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field.pop("default", None)
    schema["required"] = [name for name in schema["properties"] if name != "stages"]


def _workflows(app: App) -> list[Workflow]:
    try:
        return app.workflows.all()
    except (InvalidInput, MissingDriver):
        return []  # whoever asks for them is told what is wrong


@functools.cache
def _zones() -> list[str]:
    # The machine's own zone and the like are names that other machines do not have.
    return [*sorted(zone for zone in zoneinfo.available_timezones() if "/" in zone), "UTC"]


@functools.cache
def _expression() -> dict[str, Any]:
    """Five fields. Any expression is taken that cron knows; this describes the common ones."""
    minute, hour = "[1-5]?[0-9]", "(1?[0-9]|2[0-3])"
    fields = (
        _field(minute, r"\*/([2-9]|[1-5][0-9])", "[0-9]-[1-5][0-9]"),
        _field(hour, r"\*/([2-9]|1[0-9]|2[0-3])", "[0-9]-(1[0-9]|2[0-3])"),
        _field("([1-9]|1[0-9]|2[0-8])", r"\*/([2-9]|1[0-5])", "[1-9]-(1[0-9]|2[0-8])"),
        _field("([1-9]|1[0-2])", r"\*/[2-6]", "[1-9]-1[0-2]"),
        _field("[0-6]", "MON-FRI", "(MON|TUE|WED|THU|FRI|SAT|SUN)"),
    )
    return {"type": "string", "pattern": f"^{' '.join(fields)}$", "examples": ["*/5 * * * *"]}


def _field(number: str, *others: str) -> str:
    return rf"(\*|{number}(,{number}){{0,5}}|{'|'.join(others)})"
