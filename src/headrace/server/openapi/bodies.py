"""Tasks as callers see them: what they take, as JSON schema, and how they are run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import msgspec

from headrace.api_types.responses import TaskView
from headrace.model.policy import TaskPolicy
from headrace.task import Task

Schema = dict[str, Any]


def shown_task(task: Task[..., Any]) -> TaskView:
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
                [kind], schema_hook=_foreign, ref_template=references
            )
        except (TypeError, NameError):
            properties[name] = {}  # it is checked all the same, when a job is handed in
        else:
            definitions |= found
    lane = task.policy.lane
    for name in () if lane is None else lane.fields():
        if properties[name].get("type") == "string":
            # It becomes the name of a lane, or a part of it.
            properties[name]["pattern"] = r"^[^\x00-\x1f\x7f]+$"
    schema = {
        "type": "object",
        "properties": properties,
        "required": task.signature.required,
        "additionalProperties": False,
    }
    return schema, definitions


def request_schema(
    task: Task[..., Any], arguments: Schema, options: Mapping[str, Schema]
) -> Schema:
    """The body of `POST /jobs` for one task."""
    return _described(
        task,
        {
            "type": "object",
            "properties": {
                "task": {"const": task.name},
                "args": arguments,
                **options,
                "lane": {"anyOf": [_lane(arguments), {"type": "null"}]},
            },
            "required": ["task", "args"] if arguments["required"] else ["task"],
            "additionalProperties": False,
            "not": _TWO_TIMES,
        },
    )


def schedule_schema(
    task: Task[..., Any], arguments: Schema, fields: Mapping[str, Schema]
) -> Schema:
    """The body of `PUT /schedules/{name}` for one task."""
    properties = {**fields, "task": {"const": task.name}, "params": arguments}
    required = ["expression", "task", *(["params"] if arguments["required"] else [])]
    return _described(
        task,
        {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    )


def upload_schemas(
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
        yield _described(
            task,
            {
                "type": "object",
                "properties": {
                    "task": {"const": task.name},
                    "args": rest,
                    # Of the two ways to say when, forms have one.
                    **{
                        each: _without_null(kind)
                        for each, kind in options.items()
                        if each != "run_at"
                    },
                    "lane": _lane(arguments),
                    name: {"type": "string", "format": "binary"},
                },
                "required": ["task", name, *(["args"] if required else [])],
                "additionalProperties": False,
            },
        )


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


def _foreign(kind: type) -> dict[str, Any]:
    """Pydantic models describe themselves."""
    describe = getattr(kind, "model_json_schema", None)
    if describe is None:
        raise NotImplementedError
    schema: dict[str, Any] = describe()
    return schema


def _policy(policy: TaskPolicy) -> dict[str, Any]:
    lane = policy.lane
    return {
        "queue": policy.queue,
        "priority": policy.priority,
        "lane": None
        if lane is None
        else {"template": lane.template, "width": lane.width, "hold": lane.hold},
        "retries": policy.retry.retries,
        "retry": {
            "base": policy.retry.base,
            "factor": policy.retry.factor,
            "maximum": policy.retry.maximum,
            "jitter": policy.retry.jitter,
        },
        "timeout": policy.timeout,
        "on_crash": policy.on_crash,
        "never_retry": [
            each if isinstance(each, str) else each.__name__ for each in policy.never_retry
        ],
        "isolate": policy.isolate,
        "memory_limit": policy.memory_limit,
    }
