"""References in a workflow: `${steps.fetch.output.price}`, and what they stand for in a run.

And conditions of steps, which execute nothing: `${steps.count.output} > 10 and not ${params.dry}`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidInput

ROOTS = ("params", "steps", "item", "index", "run")
# What a step tells to others.
STEP_PARTS = ("output", "status")

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_SEGMENT = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d+)\]|\[\"([^\"\]]*)\"\]")

Place = tuple[str | int, ...]

# Of a condition.
LONGEST = 2_000
_CONSTANTS = {"true": True, "false": False, "null": None}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}


class Reference(msgspec.Struct, frozen=True):
    """One `${…}`, as it is written, with its root and the way from there."""

    text: str
    root: str
    path: tuple[str | int, ...]

    def __str__(self) -> str:
        return "${" + self.text + "}"


class BadReference(InvalidInput):
    """A reference that cannot be read, or that leads nowhere. `place` is where it stands."""

    place: Place = ()


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
    match value:
        case str():
            for found in _REFERENCE.finditer(value):
                if not _escaped(value, found.start()):
                    yield place, _parse_at(found[1], place)
        case Mapping():
            for key, each in value.items():
                yield from find(each, (*place, key))
        case list() | tuple():
            for index, each in enumerate(value):
                yield from find(each, (*place, index))


def _parse_at(text: str, place: Place) -> Reference:
    try:
        return parse(text)
    except BadReference as error:
        error.place = place
        raise


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
    whole = _REFERENCE.fullmatch(text)
    if whole is not None:
        return look_up(parse(whole[1]), scope)

    def replaced(found: re.Match[str]) -> str:
        if _escaped(text, found.start()):
            return found[0]
        value = look_up(parse(found[1]), scope)
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    return _REFERENCE.sub(replaced, text).replace("$${", "${")


def _escaped(text: str, start: int) -> bool:
    return start > 0 and text[start - 1] == "$"


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


class BadCondition(InvalidInput):
    """A condition that cannot be read or decided."""


class Condition:
    """A condition that has been read. It knows comparisons, `and`, `or`, `not`, `in` and lists."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._references: list[Reference] = []
        if len(text) > LONGEST:
            raise BadCondition(f"the condition is longer than {LONGEST} characters")
        marked = _REFERENCE.sub(self._mark, text)
        try:
            self._tree = ast.parse(marked.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise BadCondition(
                f"the condition {text!r} cannot be read; write for example "
                '${steps.check.output.count} > 0 and ${params.mode} == "full"'
            ) from None
        self._check(self._tree)

    def holds(self, scope: Mapping[str, Any]) -> bool:
        """Whether it is true, with these values."""
        try:
            return bool(self._value(self._tree, scope))
        except TypeError as error:
            raise BadCondition(f"the condition {self.text!r} cannot be decided: {error}") from None

    def _mark(self, found: re.Match[str]) -> str:
        self._references.append(parse(found[1]))
        return f" _{len(self._references) - 1} "

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                pass
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                parts = [operand]
            case ast.Compare(left=left, comparators=others, ops=kinds) if all(
                type(kind) in _COMPARE for kind in kinds
            ):
                parts = [left, *others]
            case ast.Constant(value=str() | int() | float() | None):
                parts = []
            case ast.Name(id=name) if name in _CONSTANTS or _number(name) < len(self._references):
                parts = []
            case _:
                shown = ast.unparse(node)
                raise BadCondition(
                    f"the condition {self.text!r} contains {shown!r}, which is not known there; "
                    "use references, text in quotes, numbers, true, false, null, comparisons, "
                    "and, or, not, in"
                )
        for part in parts:
            self._check(part)

    def _value(self, node: ast.expr, scope: Mapping[str, Any]) -> Any:
        match node:
            case ast.BoolOp(op=kind, values=parts):
                decide = all if isinstance(kind, ast.And) else any
                value: Any = decide(self._value(part, scope) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = not self._value(operand, scope)
            case ast.UnaryOp(operand=operand):
                value = -self._value(operand, scope)
            case ast.Compare(left=left, comparators=others, ops=kinds):
                sides = [self._value(each, scope) for each in (left, *others)]
                value = all(
                    _COMPARE[type(kind)](one, other)
                    for kind, one, other in zip(kinds, sides, sides[1:], strict=False)
                )
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                value = [self._value(part, scope) for part in parts]
            case ast.Constant(value=value):
                pass
            case ast.Name(id=name) if name in _CONSTANTS:
                value = _CONSTANTS[name]
            case ast.Name(id=name):
                value = look_up(self._references[_number(name)], scope)
            case _:
                raise AssertionError(ast.dump(node))  # `_check` has refused it
        return value


def _number(name: str) -> int:
    """The number of a marked reference; one that is too large for anything else."""
    return int(name[1:]) if re.fullmatch(r"_\d{1,4}", name) else LONGEST
