"""Tasks as callers see them: what they take, as JSON schema, and how they are run."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import msgspec

from headrace.model.policy import TaskPolicy
from headrace.server.bodies import JobRequest
from headrace.task import Task

_OPTIONS = [
    field.name for field in msgspec.structs.fields(JobRequest) if field.name not in ("task", "args")
]


def shown_task(task: Task[..., Any]) -> dict[str, Any]:
    """A task with its arguments and its policy."""
    arguments, definitions = argument_schema(task, "#/$defs/{name}")
    if definitions:
        arguments["$defs"] = definitions
    return {
        "name": task.name,
        "description": inspect.getdoc(task.function),
        "arguments": arguments,
        "policy": _policy(task.policy),
    }


def argument_schema(
    task: Task[..., Any], references: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
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
    schema = {
        "type": "object",
        "properties": properties,
        "required": task.signature.required,
        "additionalProperties": False,
    }
    return schema, definitions


def request_schema(task: Task[..., Any], body: dict[str, Any], references: str) -> Any:
    """The body of `POST /jobs` for one task."""
    arguments, definitions = argument_schema(task, references)
    properties = {name: body["properties"][name] for name in _OPTIONS}
    properties["lane"] = _lane(task, arguments)
    schema = {
        "title": task.name,
        "type": "object",
        "properties": {"task": {"const": task.name}, "args": arguments, **properties},
        "required": ["task", "args"] if arguments["required"] else ["task"],
        "additionalProperties": False,
        # Both say when; a job has one time.
        "not": {
            "required": ["delay", "run_at"],
            "properties": {"delay": {"type": "number"}, "run_at": {"type": "string"}},
        },
    }
    if description := inspect.getdoc(task.function):
        schema["description"] = description
    return schema, definitions


def _lane(task: Task[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Any text; in braces it may name a required argument that is text, a number or a boolean."""
    plain = [
        name
        for name in arguments["required"]
        if arguments["properties"][name].get("type") in ("string", "integer", "boolean")
    ]
    names = "".join(rf"|\{{{name}\}}" for name in plain)
    pattern = rf"^([^\x00-\x1f\x7f{{}}]{names}){{1,512}}$"
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "null"}], "default": None}


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
