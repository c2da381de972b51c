"""Bodies that depend on the tasks and workflows of an App, as JSON schema."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from headrace.api_types.responses import TaskView
from headrace.app import App
from headrace.errors import InvalidInput, MissingDriver
from headrace.model.job import PRIORITY_LIMIT
from headrace.model.policy import TaskPolicy
from headrace.publishing.destinations import OPTIONS
from headrace.server.openapi.registry import REFERENCES, Schema
from headrace.task import Task
from headrace.task.codec import schema_hook
from headrace.task.task import MOST_RETRIES
from headrace.workflows.model import Param, Workflow


def add_bodies(schemas: dict[str, Schema], app: App) -> dict[str, Schema]:
    """Describe the bodies of `POST /jobs` and the like for each task and workflow of the App."""
    options = {
        name: schema
        for name, schema in schemas["JobRequest"]["properties"].items()
        if name not in ("task", "args")
    }
    # Whole numbers may also be sent as 5.0; the document leaves that out.
    options |= {
        "priority": _optional_integer(-PRIORITY_LIMIT, PRIORITY_LIMIT),
        "retries": _optional_integer(0, MOST_RETRIES),
    }
    variants: list[Schema] = []
    uploads: list[Schema] = []
    schedules: list[Schema] = []
    for name in sorted(app.tasks):
        arguments, definitions = argument_schema(app.tasks[name], REFERENCES)
        schemas |= definitions
        variants.append(_request(app.tasks[name], arguments, options))
        uploads += _uploads(app.tasks[name], arguments, options)
        schedules.append(
            _schedule(app.tasks[name], arguments, schemas["ScheduleRequest"]["properties"])
        )
    if variants:
        schemas["JobRequest"] = {"oneOf": variants}
        schemas["ScheduleRequest"] = {"oneOf": schedules}
    nothing: list[Any] = [False]
    runs = schemas["ExecuteRequest"]["properties"]
    known = [_execution(workflow, runs) for workflow in _workflows(app)]
    schemas["ExecuteRequest"] = {"oneOf": known} if known else {"anyOf": nothing}
    schemas["JobUpload"] = uploads[0] if len(uploads) == 1 else {"anyOf": uploads or nothing}
    schemas["FilterRequest"]["minProperties"] = 1
    fields = schemas["DestinationRequest"]["properties"]
    schemas["DestinationRequest"] = _destinations(fields, REFERENCES)
    return schemas


def _destinations(fields: dict[str, Schema], references: str) -> Schema:
    """The schema of a request for a destination: each kind has options of its own."""
    choices = []
    for kind, options in OPTIONS.items():
        [schema], found = msgspec.json.schema_components([options], ref_template=references)
        own = found[options.__name__] if "$ref" in schema else schema
        secret = {} if kind == "webhook" else {"secret": {"type": "null"}}
        choices.append(
            {
                "type": "object",
                "properties": {**fields, "kind": {"const": kind}, "options": own, **secret},
                "required": ["kind", "options"],
                "additionalProperties": False,
            }
        )
    return {"oneOf": choices}


def _optional_integer(least: int, most: int) -> Schema:
    return {"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, {"type": "null"}]}


def _workflows(app: App) -> list[Workflow]:
    try:
        return app.workflows.all()
    except (InvalidInput, MissingDriver):
        return []  # the routes of workflows report the error


def task_view(task: Task[..., Any]) -> TaskView:
    """A task with its arguments and its policy."""
    arguments, definitions = argument_schema(task, "#/$defs/{name}")
    if definitions:
        arguments["$defs"] = definitions
    return TaskView(
        name=task.name,
        description=inspect.getdoc(task.function),
        arguments=arguments,
        policy=_policy(task.policy),
    )


def argument_schema(task: Task[..., Any], references: str) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a task's arguments, and the definitions that it refers to."""
    hints = get_type_hints(task.function, include_extras=True)
    properties: dict[str, Any] = {}
    definitions: dict[str, dict[str, Any]] = {}
    for name in task.signature.names:
        kind = hints.get(name, Any)
        try:
            [properties[name]], found = msgspec.json.schema_components(
                [kind], schema_hook=schema_hook, ref_template=references
            )
        except (TypeError, NameError):
            properties[name] = {}  # it is checked all the same when a job is enqueued
        else:
            definitions |= found
    lane = task.policy.lane
    for name in () if lane is None else lane.fields():
        if properties[name].get("type") == "string":
            # It becomes the name of a lane, or a part of it.
            properties[name]["pattern"] = r"^[^\x00-\x1f\x7f]+$"
    return _object(properties, task.signature.required), definitions


def _object(properties: Schema, required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _request(task: Task[..., Any], arguments: Schema, options: Mapping[str, Schema]) -> Schema:
    """The body of `POST /jobs` for one task."""
    lane = {"anyOf": [_lane(arguments), {"type": "null"}]}
    properties = {"task": {"const": task.name}, "args": arguments, **options, "lane": lane}
    required = ["task", "args"] if arguments["required"] else ["task"]
    return _described(task, _object(properties, required) | {"not": _TWO_TIMES})


def _schedule(task: Task[..., Any], arguments: Schema, fields: Mapping[str, Schema]) -> Schema:
    """The body of `PUT /schedules/{name}` for one task."""
    properties = {**fields, "task": {"const": task.name}, "params": arguments}
    required = ["expression", "task", *(["params"] if arguments["required"] else [])]
    return _described(task, _object(properties, required))


def _uploads(
    task: Task[..., Any], arguments: Schema, options: Mapping[str, Schema]
) -> Iterator[Schema]:
    """The forms of `POST /jobs` for one task: one for each argument that takes a file.

    Any argument that is text can be sent as a file; those are shown whose names speak of one.
    """
    for name, schema in arguments["properties"].items():
        if schema.get("type") != "string" or not _FILE.search(name):
            continue
        others = {each: kind for each, kind in arguments["properties"].items() if each != name}
        required = [each for each in arguments["required"] if each != name]
        rest = arguments | {"properties": others, "required": required}
        # Of the two ways to say when, forms have one.
        others = {each: kind for each, kind in options.items() if each != "run_at"}
        properties = {
            "task": {"const": task.name},
            "args": rest,
            **{each: _without_null(kind) for each, kind in others.items()},
            "lane": _lane(arguments),
            name: {"type": "string", "format": "binary"},
        }
        needed = ["task", name, *(["args"] if required else [])]
        yield _described(task, _object(properties, needed))


_FILE = re.compile("file|path")
# A job has one time: both fields would say when.
_TWO_TIMES = {
    "required": ["delay", "run_at"],
    "properties": {"delay": {"type": "number"}, "run_at": {"type": "string"}},
}


def _described(task: Task[..., Any], schema: Schema) -> Schema:
    description = inspect.getdoc(task.function)
    return {"title": task.name, **schema} | ({"description": description} if description else {})


def _without_null(schema: Schema) -> Schema:
    """A field that a form leaves out rather than to send null."""
    kinds: list[Schema] = [each for each in schema["anyOf"] if each != {"type": "null"}]
    return kinds[0]


def _lane(arguments: Schema) -> Schema:
    """Any text; in braces it may name a required argument that is a whole number or a boolean."""
    plain = [
        name
        for name in arguments["required"]
        if arguments["properties"][name].get("type") in ("integer", "boolean")
    ]
    names = "".join(rf"|\{{{name}\}}" for name in plain)
    return {"type": "string", "pattern": rf"^([^\x00-\x1f\x7f{{}}]{names}){{1,512}}$"}


def _execution(workflow: Workflow, fields: dict[str, Schema]) -> Schema:
    """The schema of a request to run this workflow. `fields` are those of any such request."""
    needs = any(param.default is msgspec.UNSET for param in workflow.params.values())
    properties = {
        **fields,
        "workflow_id": {"const": workflow.id},
        "version": {"enum": [workflow.version, None]},
        "params": _params(workflow),
    }
    required = ["workflow_id", *(["params"] if needs else [])]
    return {"title": workflow.id, **_object(properties, required)}


def _params(workflow: Workflow) -> Schema:
    if not workflow.params:
        return {"type": "object"}
    required = [name for name, each in workflow.params.items() if each.default is msgspec.UNSET]
    return _object({name: _param(each) for name, each in workflow.params.items()}, required)


def _param(param: Param) -> Schema:
    schema: Schema = {} if param.type == "any" else {"type": param.type}
    if param.description:
        schema["description"] = param.description
    if param.default is not msgspec.UNSET:
        schema["default"] = param.default
    return schema


def _policy(policy: TaskPolicy) -> dict[str, Any]:
    lane, retry = policy.lane, msgspec.structs.asdict(policy.retry)
    never = [each if isinstance(each, str) else each.__name__ for each in policy.never_retry]
    # Those that come first on the wire, then the others.
    first = {
        "queue": policy.queue,
        "priority": policy.priority,
        "lane": lane and {"template": lane.template, "width": lane.width, "hold": lane.hold},
        "retries": retry.pop("retries"),
    }
    rest = msgspec.structs.asdict(policy) | {"retry": retry, "never_retry": never}
    return first | rest | first
