"""The OpenAPI document: routes from FastAPI, bodies and answers from our own structs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from headrace.app import App
from headrace.model.job import PRIORITY_LIMIT
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.server import bodies
from headrace.server.answers import JobBody
from headrace.server.audit import AuditEntry
from headrace.server.keys import Scope
from headrace.server.problems import MEDIA_TYPE, Problem
from headrace.server.task_schemas import argument_schema, request_schema, upload_schemas
from headrace.version import __version__

REFERENCES = "#/components/schemas/{name}"
_PRIORITY = {
    "anyOf": [
        {"type": "integer", "minimum": -PRIORITY_LIMIT, "maximum": PRIORITY_LIMIT},
        {"type": "null"},
    ]
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "hr_<id>_<secret>"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


class BulkAnswer(msgspec.Struct):
    """How many jobs matched and were changed, and the ids of the first 100."""

    matched: int
    changed: int
    ids: list[str]


class Entry(msgspec.Struct):
    """Something kept with a job: a stage, an artifact. `body` is any JSON."""

    kind: str
    name: str
    body: Any
    token: int
    at: datetime


class Artifact(msgspec.Struct):
    """A file of a job."""

    layer: str
    name: str
    size: int
    media_type: str | None
    path: str


class JobResult(msgspec.Struct):
    """What a job's handler returned: any JSON."""

    result: Any


class Reasons(msgspec.Struct):
    """Why a job is not running, in sentences."""

    reasons: list[str]


class QueuePaused(msgspec.Struct):
    """Whether a queue is paused now."""

    queue: str
    paused: bool


class TaskView(msgspec.Struct):
    """A task: its arguments as JSON schema, and its policy."""

    name: str
    description: str | None
    arguments: dict[str, Any]
    policy: dict[str, Any]


class KeyView(msgspec.Struct):
    """A key, without its secret."""

    id: str
    name: str
    scope: Scope
    user: str | None
    queues: list[str]
    rate: float | None
    created_at: datetime
    revoked_at: datetime | None


class NewKey(KeyView):
    """A key with its secret, which is shown this once."""

    secret: str


class Health(msgspec.Struct):
    """All is well."""

    status: Literal["ok"]


class RunningJob(msgspec.Struct):
    """A job that runs now. `platform` is its queue."""

    platform: str
    job_id: str
    workflow_id: str | None
    started_at: datetime | None
    elapsed_seconds: float


class RunningSummary(msgspec.Struct):
    """How many run, how many wait."""

    running_count: int
    queued_count: int


class RunningData(msgspec.Struct):
    """Running jobs, and how many are queued in each queue."""

    running: list[RunningJob]
    queued: dict[str, int]
    summary: RunningSummary


class RunningAnswer(msgspec.Struct):
    """What runs now, and what waits."""

    success: Literal[True]
    data: RunningData


SHOWN = (
    bodies.JobRequest,
    bodies.BatchRequest,
    bodies.CancelRequest,
    bodies.EmptyRequest,
    bodies.BulkRequest,
    bodies.KeyRequest,
    JobBody,
    Problem,
    BulkAnswer,
    Entry,
    Artifact,
    JobResult,
    Reasons,
    QueueView,
    QueuePaused,
    LaneView,
    Worker,
    TaskView,
    KeyView,
    NewKey,
    AuditEntry,
    RunningAnswer,
    Health,
)


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
    options = {
        name: schema
        for name, schema in schemas["JobRequest"]["properties"].items()
        if name not in ("task", "args")
    }
    options["priority"] = _PRIORITY
    variants: list[dict[str, Any]] = []
    uploads: list[dict[str, Any]] = []
    for name in sorted(app.tasks):
        arguments, definitions = argument_schema(app.tasks[name], REFERENCES)
        schemas |= definitions
        variants.append(request_schema(app.tasks[name], arguments, options))
        uploads += upload_schemas(app.tasks[name], arguments, options)
    if variants:
        schemas["JobRequest"] = {"oneOf": variants}
    nothing: list[Any] = [False]
    schemas["JobUpload"] = uploads[0] if len(uploads) == 1 else {"anyOf": uploads or nothing}
    schemas["FilterRequest"]["minProperties"] = 1
    return schemas
