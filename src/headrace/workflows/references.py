"""References in a workflow: `${steps.fetch.output.price}`, and what they stand for in a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidInput

ROOTS = ("params", "steps", "item", "index", "run")
# What a step tells to others.
STEP_PARTS = ("output", "status")

REFERENCE = re.compile(r"\$\{([^{}]*)\}")
# `$${` stands for `${`. Whatever comes first counts.
_PART = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<inside>[^{}]*)\}")
_SEGMENT = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d+)\]|\[\"([^\"\]]*)\"\]")

Place = tuple[str | int, ...]


class Reference(msgspec.Struct, frozen=True):
    """One `${…}`, as it is written, with its root and the way from there."""

    text: str
    root: str
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        return "${" + self.text + "}"


class BadReference(InvalidInput):
    """A reference that cannot be read, or that leads nowhere."""


def parse(text: str) -> Reference:
    """Read what stands between the braces."""
    inside = text.strip()
    root = re.match(r"[a-z]+", inside)
    if root is None or root[0] not in ROOTS:
        raise BadReference(
            f"${{{text}}} begins with none of {', '.join(ROOTS)}; write for example "
            "${params.url} or ${steps.fetch.output.price}"
        )
    path: list[str | int] = []
    position = root.end()
    while position < len(inside):
        segment = _SEGMENT.match(inside, position)
        if segment is None:
            raise BadReference(
                f"${{{text}}} cannot be read at {inside[position:]!r}; "
                'use .name, [0] or ["any name"]'
            )
        name, number, quoted = segment.groups()
        path.append(int(number) if number is not None else name if name is not None else quoted)
        position = segment.end()
    if root[0] == "steps" and (len(path) < 2 or path[1] not in STEP_PARTS):
        raise BadReference(
            f"${{{text}}} must name a step and what of it: ${{steps.ID.output}} or "
            "${steps.ID.status}"
        )
    if root[0] in ("params", "run") and not path:
        raise BadReference(f"${{{text}}} must name one of them, for example ${{{root[0]}.id}}")
    return Reference(inside, root[0], tuple(path))


def find(value: Any, place: Place = ()) -> Iterator[tuple[Place, Reference]]:
    """All references within a value, each with its place. Raises `BadReference`."""
    for at, text in find_text(value, place):
        yield at, parse(text)


def find_text(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """What stands between the braces of all references within a value, each with its place."""
    match value:
        case str():
            for part in _PART.finditer(value):
                if (inside := part["inside"]) is not None:
                    yield place, inside
        case Mapping():
            for key, each in value.items():
                yield from find_text(each, (*place, key))
        case list() | tuple():
            for index, each in enumerate(value):
                yield from find_text(each, (*place, index))


def resolve(value: Any, scope: Mapping[str, Any]) -> Any:
    """The value with every reference replaced by what it stands for in this scope.

    Text that is one reference and nothing else becomes the value itself, whatever its type. Within
    other text it becomes text. `$${` stands for `${`.
    """
    match value:
        case str():
            return _text(value, scope)
        case Mapping():
            return {key: resolve(each, scope) for key, each in value.items()}
        case list() | tuple():
            return [resolve(each, scope) for each in value]
        case _:
            return value


def look_up(reference: Reference, scope: Mapping[str, Any]) -> Any:
    """What a reference stands for. What was skipped or failed is None, and all that is in it."""
    if reference.root not in scope:
        raise BadReference(f"{reference} has no value here")
    value = scope[reference.root]
    for number, segment in enumerate(reference.path):
        if value is None and reference.root == "steps" and number > 1:
            return None
        try:
            value = value[segment]
        except (KeyError, IndexError, TypeError):
            raise BadReference(
                f"{reference} leads nowhere: {_described(value)} has no {segment!r}"
            ) from None
    return value


def _text(text: str, scope: Mapping[str, Any]) -> Any:
    whole = REFERENCE.fullmatch(text)
    if whole is not None:
        return look_up(parse(whole[1]), scope)

    def replaced(part: re.Match[str]) -> str:
        if part["escaped"] is not None:
            return part["escaped"]
        return as_text(look_up(parse(part["inside"]), scope))

    # In one go: what a reference stands for is not looked at again.
    return _PART.sub(replaced, text)


def as_text(value: Any) -> str:
    """What a value becomes within other text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _described(value: Any) -> str:
    match value:
        case Mapping():
            names = ", ".join(repr(name) for name in list(value)[:10])
            return f"an object with {names}" if names else "an empty object"
        case list() | tuple():
            return f"a list of {len(value)}"
        case None:
            return "null"
        case _:
            return f"a {type(value).__name__}"
