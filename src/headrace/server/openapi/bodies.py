"""Bodies that depend on the tasks and workflows of an App, as JSON schema."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from headrace.api_types.responses import TaskView
from headrace.errors import InvalidInput, MissingDriver
from headrace.model.alerts.notice import ALERT_TYPE
from headrace.model.alerts.rule import COMMON, FIELDS
from headrace.model.job import PRIORITY_LIMIT
from headrace.model.policy import TaskPolicy
from headrace.publishing.destinations import FOR_ALERTS, OPTIONS
from headrace.server.openapi.registry import REFERENCES, Schema, add_variants
from headrace.task import Task
from headrace.task.codec import schema_hook
from headrace.task.job_options import MOST_RETRIES
from headrace.workflows.model import Param, Workflow


def add_bodies(
    schemas: dict[str, Schema],
    tasks: Mapping[str, Task[..., Any]],
    workflows: Callable[[], list[Workflow]],
) -> dict[str, Schema]:
    """Describe the bodies of `POST /jobs` and the like for each of these tasks and workflows."""
    options = {
        name: schema
        for name, schema in schemas["JobRequest"]["properties"].items()
        if name not in ("task", "args")
    }
    # Whole numbers may also be sent as 5.0; the document leaves that out.
    options |= {
        "priority": _optional_integer(-PRIORITY_LIMIT, PRIORITY_LIMIT),
        "retries": _optional_integer(0, MOST_RETRIES),
        "run_at": {"anyOf": [_RUN_AT, {"type": "null"}]},
        "expires_at": {"anyOf": [_RUN_AT, {"type": "null"}]},
    }
    # Which arguments a copy takes depends on its job.
    free: Schema = {"required": [], "properties": {}}
    lane = {"anyOf": [_lane(free), {"type": "null"}]}
    copied = schemas["CopyRequest"]
    copied["properties"] |= {
        name: options[name] for name in ("priority", "retries", "run_at", "expires_at")
    }
    copied["properties"]["lane"] = lane
    copied["not"] = _CONTRADICTIONS
    variants: list[tuple[str, Schema]] = []
    uploads: list[tuple[str, Schema]] = []
    schedules: list[tuple[str, Schema]] = []
    for name, task in sorted(tasks.items()):
        arguments, definitions = argument_schema(task, REFERENCES)
        schemas |= definitions
        variants.append((name, _request(task, arguments, options)))
        uploads += _uploads(task, arguments, options)
        fields = schemas["ScheduleRequest"]["properties"]
        schedules.append((name, _schedule(task, arguments, fields)))
    runs = schemas["ExecuteRequest"]["properties"]
    runs["priority"] = {"type": "integer", "minimum": -PRIORITY_LIMIT, "maximum": PRIORITY_LIMIT}
    known = [(each.id, _execution(each, runs)) for each in _workflows(workflows)]
    schemas["JobUpload"] = _any_upload(options)
    for kind, parts, word in (
        ("JobRequest", variants, "oneOf"),
        ("ScheduleRequest", schedules, "oneOf"),
        ("ExecuteRequest", known, "oneOf"),
        ("JobUpload", uploads, "anyOf"),
    ):
        add_variants(schemas, kind, parts, word)
    schemas["FilterRequest"]["minProperties"] = 1
    schemas["PauseRequest"]["not"] = _TWO_ENDS
    schemas["HoldRequest"]["oneOf"] = _ONE_END
    _add_destinations(schemas)
    _add_alert_rules(schemas)
    return schemas


def _add_destinations(schemas: dict[str, Schema]) -> None:
    """The schema of a request for a destination: each kind has options of its own."""
    fields = schemas["DestinationRequest"]["properties"]
    choices = []
    for kind, options in OPTIONS.items():
        [schema], found = msgspec.json.schema_components([options], ref_template=REFERENCES)
        schemas |= found
        more: Schema = {} if kind == "webhook" else {"secret": {"type": "null"}}
        if kind in FOR_ALERTS:
            alone = {"enum": ["*", ALERT_TYPE]}
            more["types"] = {**fields["types"], "items": alone}
        properties = {**fields, "kind": {"const": kind}, "options": schema, **more}
        choices.append((kind, _object(properties, ["kind", "options"])))
    add_variants(schemas, "DestinationRequest", choices, "oneOf")


def _add_alert_rules(schemas: dict[str, Schema]) -> None:
    """The schema of a request for an alert rule: each kind takes fields of its own."""
    fields = schemas["AlertRuleRequest"]["properties"]
    choices = []
    for kind, taken in FIELDS.items():
        needed = [name.rstrip("*") for name in taken if name.endswith("*")]
        # What the engine uses, or what is free: one of both.
        for alone in taken if kind == "engine_space" else (None,):
            names = [name.rstrip("*") for name in taken] if alone is None else [alone]
            required = needed if alone is None else [alone]
            properties = {name: fields[name] for name in (*COMMON, *names)}
            properties |= {name: _without_null(fields[name]) for name in required}
            if kind == "failure_rate":
                share = {
                    each: value for each, value in properties["above"].items() if each != "maximum"
                }
                properties["above"] = {**share, "exclusiveMaximum": 1}
            properties["kind"] = {"const": kind}
            label = kind if alone is None else f"{kind}_{alone}"
            choices.append((label, _object(properties, ["kind", "to", *required])))
    add_variants(schemas, "AlertRuleRequest", choices, "oneOf")


def _optional_integer(least: int, most: int) -> Schema:
    return {"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, {"type": "null"}]}


def _workflows(find: Callable[[], list[Workflow]]) -> list[Workflow]:
    try:
        return find()
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
        policy=_policy(task.policy) | {"encrypt": task.encrypted},
    )


def argument_schema(task: Task[..., Any], references: str) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a task's arguments, and the definitions that it refers to."""
    properties: dict[str, Any] = {}
    definitions: dict[str, dict[str, Any]] = {}
    for name, kind in task.signature.kinds.items():
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
            # It becomes the name of a lane, which is not empty, or a part of it.
            some = "+" if lane is not None and lane.template == f"{{{name}}}" else "*"
            properties[name]["pattern"] = rf"^[^\x00-\x1f\x7f]{some}$"
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
    return _described(task, _object(properties, required) | {"not": _CONTRADICTIONS})


def _schedule(task: Task[..., Any], arguments: Schema, fields: Mapping[str, Schema]) -> Schema:
    """The body of `PUT /schedules/{name}` for one task."""
    properties = {**fields, "task": {"const": task.name}, "params": arguments}
    required = ["expression", "task", *(["params"] if arguments["required"] else [])]
    return _described(task, _object(properties, required))


def _uploads(
    task: Task[..., Any], arguments: Schema, options: Mapping[str, Schema]
) -> Iterator[tuple[str, Schema]]:
    """The forms of `POST /jobs` for one task, named: one for each argument that takes a file.

    Any argument that is text can be sent as a file; those are shown whose names speak of one.
    """
    for name, schema in arguments["properties"].items():
        if schema.get("type") != "string" or not _FILE.search(name):
            continue
        others = {each: kind for each, kind in arguments["properties"].items() if each != name}
        required = [each for each in arguments["required"] if each != name]
        rest = arguments | {"properties": others, "required": required}
        others = {each: kind for each, kind in options.items() if each not in _NOT_IN_FORMS}
        properties = {
            "task": {"const": task.name},
            "args": rest,
            **{each: _without_null(kind) for each, kind in others.items()},
            "timeout": options["timeout"],
            "lane": _lane(arguments),
            name: {"type": "string", "format": "binary"},
        }
        needed = ["task", name, *(["args"] if required else [])]
        yield f"{task.name}_{name}", _described(task, _object(properties, needed))


def _any_upload(options: Mapping[str, Schema]) -> Schema:
    """The form of `POST /jobs` where no argument is known to take a file."""
    fields = {
        each: _without_null(kind) for each, kind in options.items() if each not in _NOT_IN_FORMS
    }
    properties = {"task": {"type": "string"}, "args": {"type": "object"}, **fields}
    return {"type": "object", "properties": properties, "required": ["task"]}


_FILE = re.compile("file|path")
# In years that every engine can store.
_RUN_AT = {
    "type": "string",
    "format": "date-time",
    "pattern": "^(19(7[1-9]|[89][0-9])|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-7])-",
}
# A hold has an end, said in one of two ways.
_ONE_END: list[Schema] = [
    {"required": [name], "properties": {name: {"type": kind}, other: {"type": "null"}}}
    for name, kind, other in (("until", "string", "for"), ("for", "number", "until"))
]
# A pause has one end, and a job one time: both fields would say when.
_TWO_ENDS = {
    "required": ["until", "for"],
    "properties": {"until": {"type": "string"}, "for": {"type": "number"}},
}
_TWO_TIMES = {
    "required": ["delay", "run_at"],
    "properties": {"delay": {"type": "number"}, "run_at": {"type": "string"}},
}
# Of two ways to say when, forms describe one; and they describe no policy of a key.
_NOT_IN_FORMS = ("run_at", "expires_at", "on_duplicate", "window", "max_wait")
_TWO_EXPIRIES = {
    "required": ["expires", "expires_at"],
    "properties": {"expires": {"type": "number"}, "expires_at": {"type": "string"}},
}
# What is said of a key needs one; a property that is left out fits every schema.
_NO_KEY: list[Schema] = [
    {"required": [name], "properties": {name: schema, "key": {"type": "null"}}}
    for name, schema in (
        ("on_duplicate", {"enum": ["replace", "debounce"]}),
        ("window", {"type": "number"}),
        ("max_wait", {"type": "number"}),
    )
]
_KEY_TWICE: list[Schema] = [
    {
        "required": ["window", "on_duplicate"],
        "properties": {
            "window": {"type": "number"},
            "on_duplicate": {"enum": ["replace", "debounce"]},
        },
    },
    {
        "required": ["max_wait"],
        "properties": {
            "max_wait": {"type": "number"},
            "on_duplicate": {"enum": ["return", "replace", None]},
        },
    },
    {
        "required": ["on_duplicate"],
        "properties": {"on_duplicate": {"const": "debounce"}, "delay": {"enum": [0, None]}},
    },
]
_CONTRADICTIONS: Schema = {"anyOf": [_TWO_TIMES, _TWO_EXPIRIES, *_NO_KEY, *_KEY_TWICE]}


def _described(task: Task[..., Any], schema: Schema) -> Schema:
    description = inspect.getdoc(task.function)
    return schema | ({"description": description} if description else {})


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
    return _object(properties, required)


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
    wait = None if policy.chunk is None else policy.seconds_to_fill
    changed = {"retry": retry, "never_retry": never, "chunk_wait": wait}
    rest = msgspec.structs.asdict(policy) | changed
    return first | rest | first
