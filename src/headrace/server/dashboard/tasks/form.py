"""A form made of the schema of a task's arguments: one field for each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from headrace.server.openapi.bodies import task_view
from headrace.task import Task
from headrace.task.codec import encode
from headrace.task.redact import Redactor

Kind = Literal["text", "number", "choice", "date", "password", "json"]
_NOTHING = object()
_FLAGS = (("true", "true"), ("false", "false"))


class FormField(msgspec.Struct, kw_only=True):
    """One argument. `text` is what stands in its field; an empty one that is not required, or has
    a default, is not sent.
    """

    name: str
    kind: Kind
    words: str
    required: bool
    text: str = ""
    # What may be chosen: JSON, and how it is shown.
    choices: tuple[tuple[str, str], ...] = ()
    default: str | None = None
    nullable: bool = False
    is_text: bool = False
    problem: str | None = None


class TaskForm:
    """The fields of a task."""

    def __init__(self, task: Task[..., Any], redactor: Redactor) -> None:
        self.task = task
        schema = task_view(task).arguments
        definitions = schema.get("$defs", {})
        defaults = task.signature.defaults
        self.fields = [
            _field(
                name,
                _resolved(kind, definitions),
                defaults.get(name, inspect.Parameter.empty),
                redactor,
            )
            for name, kind in schema["properties"].items()
        ]

    def read(self, form: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the arguments that were typed; None if some are wrong, and then fields say so."""
        arguments: dict[str, Any] = {}
        for field in self.fields:
            field.text = form.get(f"arg-{field.name}", "")
            try:
                value = _value(field)
            except ValueError as error:
                field.problem = str(error)
                continue
            if value is not _NOTHING:
                arguments[field.name] = value
                if fault := self.task.signature.fault(field.name, value):
                    field.problem = fault.rpartition(" (")[0]
        for field in self.fields:
            if field.kind == "password":
                field.text = ""  # never sent back
        return None if any(field.problem for field in self.fields) else arguments


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "") if isinstance(schema, dict) else ""
    found = definitions.get(reference.rpartition("/")[2]) if reference else schema
    return found if isinstance(found, dict) else {}


def _field(name: str, schema: dict[str, Any], default: Any, redactor: Redactor) -> FormField:
    kinds = [each for each in schema.get("anyOf", [schema]) if each != {"type": "null"}]
    nullable = len(kinds) < len(schema.get("anyOf", [schema]))
    kind = kinds[0] if len(kinds) == 1 else {}
    field = FormField(
        name=name,
        kind="json",
        words=type_words(schema),
        required=default is inspect.Parameter.empty,
        nullable=nullable,
        is_text=kind.get("type") == "string" and "enum" not in kind,
    )
    if "enum" in kind:
        field.kind = "choice"
        field.choices = tuple((_json(each), str(each)) for each in kind["enum"])
    elif kind.get("type") == "boolean":
        field.kind, field.choices = "choice", _FLAGS
    elif kind.get("type") in ("integer", "number"):
        field.kind = "number"
    elif field.is_text:
        field.kind = "date" if kind.get("format") == "date" else "text"
    if redactor.hides(name):
        field.kind, field.choices = (
            ("password", ()) if field.is_text else (field.kind, field.choices)
        )
    elif not field.required:
        field.text, field.default = _shown_default(field, default, redactor)
    return field


def _shown_default(field: FormField, default: Any, redactor: Redactor) -> tuple[str, str | None]:
    if default is None:
        return "", "null"
    try:
        written = _json(default)
    except (TypeError, ValueError, OverflowError):
        return "", None
    plain = msgspec.json.decode(written)
    if redactor.value(plain) != plain:
        return "", None
    return (plain if field.is_text and isinstance(plain, str) else written), written


def _value(field: FormField) -> Any:
    text = field.text if field.is_text else field.text.strip()
    if not text:
        if field.is_text and field.default not in (None, "null"):
            return ""  # its default was there, and was taken out
        if not field.required:
            return _NOTHING
        if field.nullable:
            return None
        raise ValueError("a value is needed")
    if field.is_text:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        what = "a number" if field.kind == "number" else "JSON"
        raise ValueError(f"this is not {what}: {text[:40]!r}") from None


def type_words(schema: Any) -> str:
    """Return what a schema takes, in a few words: "text or null", "list of whole numbers"."""
    if not isinstance(schema, dict) or not schema:
        return "anything"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(type_words, schema["anyOf"])))
    if "enum" in schema:
        return "one of " + ", ".join(str(each) for each in schema["enum"][:20])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type")
    words: str = {
        "string": "text", "integer": "whole number", "number": "number", "boolean": "true or false",
        "null": "null", "object": schema.get("title", "object"), "array": "list",
    }.get(str(kind), "anything")  # fmt: skip
    if kind == "array" and schema.get("items"):
        words += f" of {type_words(schema['items'])}"
    if "format" in schema:
        words = str(schema["format"])
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None or most is not None:
        words += ("" if least is None else f" from {least}") + (
            "" if most is None else f" to {most}"
        )
    return words


def _json(value: Any) -> str:
    written: bytes = encode(value)
    return written.decode()
