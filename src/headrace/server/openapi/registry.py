"""How routes tell OpenAPI what they take and what they answer: by the names of schemas."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

JSON = "application/json"


def named(schema: str) -> dict[str, Any]:
    """A reference to a schema."""
    return {"$ref": f"#/components/schemas/{schema}"}


def page(noun: str, schema: str) -> dict[str, Any]:
    """The schema of a page of a list."""
    return {
        "type": "object",
        "properties": {
            noun: {"type": "array", "items": named(schema)},
            "cursor": {"type": ["string", "null"]},
        },
        "required": [noun, "cursor"],
    }


def answers(
    schema: str | dict[str, Any],
    status: int = 200,
    *,
    also: dict[int, str | dict[str, Any]] | None = None,
    media_type: str = JSON,
) -> dict[str, Any]:
    """The success of a route, and other answers that it may give."""
    return {
        "status_code": status,
        "response_class": Response,
        "responses": {
            code: {"description": _WORDS[code], "content": {media_type: {"schema": _schema(each)}}}
            for code, each in {status: schema, **(also or {})}.items()
        },
    }


def accepts(
    schema: str, *, optional: bool = False, multipart: str | None = None, **extra: Any
) -> dict[str, Any]:
    """The body that a route takes."""
    content: dict[str, Any] = {JSON: {"schema": named(schema)}}
    if multipart is not None:
        content["multipart/form-data"] = {"schema": named(multipart)}
    return {
        "openapi_extra": {"requestBody": {"required": not optional, "content": content}, **extra}
    }


def _schema(schema: str | dict[str, Any]) -> dict[str, Any]:
    return named(schema) if isinstance(schema, str) else schema


_WORDS = {
    200: "Done.",
    201: "Made.",
    202: "Accepted; it will run.",
    204: "Gone.",
    206: "A part.",
}
