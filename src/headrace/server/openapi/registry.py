"""How routes describe what they take and return: by types, which become named schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from headrace.api_types.job import JobBody
from headrace.api_types.responses import DispatcherView, EntryView, ProblemDetails

JSON = "application/json"
REFERENCES = "#/components/schemas/{name}"
Schema = dict[str, Any]

# Types whose schema has a shorter name.
NAMES: dict[type, str] = {JobBody: "Job", ProblemDetails: "Problem", EntryView: "Entry"}
_requests: dict[type[msgspec.Struct], None] = {}
_responses: dict[type[msgspec.Struct], None] = {ProblemDetails: None}


def page(noun: str, item: type[msgspec.Struct]) -> Schema:
    """Return the schema of a page of a list."""
    return {
        "type": "object",
        "properties": {
            noun: {"type": "array", "items": _response(item)},
            "cursor": {"type": ["string", "null"]},
        },
        "required": [noun, "cursor"],
    }


def described(item: type[msgspec.Struct]) -> Schema:
    """Return a reference to the schema of what a route returns."""
    return _response(item)


def answers(
    kind: type[msgspec.Struct] | Schema,
    status: int = 200,
    *,
    also: dict[int, type[msgspec.Struct] | Schema] | None = None,
    media_type: str = JSON,
) -> dict[str, Any]:
    """Describe the success of a route, and its other responses."""
    return {
        "status_code": status,
        "response_class": Response,
        "responses": {
            code: {"description": _WORDS[code], "content": {media_type: {"schema": _schema(each)}}}
            for code, each in {status: kind, **(also or {})}.items()
        },
    }


def accepts(
    kind: type[msgspec.Struct], *, multipart: str | None = None, **extra: Any
) -> dict[str, Any]:
    """Describe the body of a route. It may be left out if all its fields may."""
    _requests[kind] = None
    required = any(field.required for field in msgspec.structs.fields(kind))
    content: dict[str, Any] = {JSON: {"schema": reference(kind.__name__)}}
    if multipart is not None:
        content["multipart/form-data"] = {"schema": reference(multipart)}
    return {"openapi_extra": {"requestBody": {"required": required, "content": content}, **extra}}


def reference(name: str) -> Schema:
    """Return a reference to a schema."""
    return {"$ref": REFERENCES.format(name=name)}


def add_variants(
    found: dict[str, Schema], kind: str, variants: Sequence[tuple[str, Schema]], word: str
) -> None:
    """Make a schema one of several. Each is a schema of its own: programs that make clients name
    their classes after it, and those must differ in more than signs and capitals.
    """
    if len(variants) == 1:
        found[kind] = variants[0][1]
        return
    choices = []
    taken = {_letters(name) for name in found}
    for name, variant in variants:
        label = f"{kind}_{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"
        number = 2
        while _letters(label) in taken:
            label = f"{label.rstrip('0123456789_')}_{number}"
            number += 1
        taken.add(_letters(label))
        found[label] = variant
        choices.append(reference(label))
    if choices:
        found[kind] = {word: choices}


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def for_generators(part: Any) -> Any:
    """Say the same so that programs that make types from schemas understand it. What has a default
    may be left out, but they take it for always there: it is told in words. An object of which
    nothing is said may have any field, but they take it for empty.
    """
    match part:
        case {"properties": dict(properties), **others}:
            told = {name: _told_default(each) for name, each in properties.items()}
            return {name: for_generators(each) for name, each in others.items()} | {
                "properties": told
            }
        case dict():
            found = {name: for_generators(each) for name, each in part.items()}
            if found.get("type") == "object":
                found.setdefault("additionalProperties", True)
            return found
        case list():
            return [for_generators(each) for each in part]
        case _:
            return part


def _told_default(schema: Any) -> Any:
    bare = for_generators(schema)
    if not isinstance(bare, dict) or "default" not in bare:
        return bare
    value = bare.pop("default")
    if value is not None:
        words = f"{bare.get('description', '')} Default: `{json.dumps(value)}`."
        bare["description"] = words.strip()
    return bare


def schemas() -> dict[str, Schema]:
    """Return the schemas of all types that routes take and return, by name."""
    kinds = [*_requests, *_responses]
    _, found = msgspec.json.schema_components(kinds, ref_template=REFERENCES)
    for kind in _structs(msgspec.inspect.multi_type_info(_responses)):
        # Every field is sent, also where clients have a default for older servers.
        if not kind.__struct_config__.omit_defaults and kind is not DispatcherView:
            _require_all(kind, found[kind.__name__])
    text = msgspec.json.encode(found)
    for kind, name in NAMES.items():
        text = text.replace(f'"{kind.__name__}"'.encode(), f'"{name}"'.encode())
        text = text.replace(f'/{kind.__name__}"'.encode(), f'/{name}"'.encode())
    renamed: dict[str, Schema] = msgspec.json.decode(text)
    renamed["Problem"]["required"] = ["type", "title", "status", "detail"]
    return renamed


def _schema(kind: type[msgspec.Struct] | Schema) -> Schema:
    return kind if isinstance(kind, dict) else _response(kind)


def _response(kind: type[msgspec.Struct]) -> Schema:
    _responses[kind] = None
    return reference(NAMES.get(kind, kind.__name__))


def _structs(part: object) -> Iterator[type[msgspec.Struct]]:
    """Find the structs that a type is made of."""
    if isinstance(part, msgspec.inspect.StructType):
        yield part.cls
    inside = msgspec.structs.astuple(part) if isinstance(part, msgspec.Struct) else part
    if isinstance(inside, tuple | list):
        for each in inside:
            yield from _structs(each)


def _require_all(kind: type[msgspec.Struct], schema: Schema) -> None:
    fields = msgspec.structs.fields(kind)
    unset = {each.encode_name for each in fields if each.default is msgspec.UNSET}
    for field in schema["properties"].values():
        field.pop("default", None)
    schema["required"] = [name for name in schema["properties"] if name not in unset]


_WORDS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted; it will run.",
    204: "Gone.",
    206: "A part.",
}
