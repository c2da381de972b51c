"""Conditions of steps, which execute nothing: `${steps.a.output} > 10 and not ${params.dry}`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import InvalidInput
from headrace.workflows.references import Reference, as_text, look_up, parse

LONGEST = 2_000
DEEPEST = 50

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
_PART = re.compile(
    r"""\$(?P<escaped>\$\{) | \$\{(?P<inside>[^{}]*)\} | \\. | (?P<quote>["'])""",
    re.VERBOSE | re.DOTALL,
)


class BadCondition(InvalidInput):
    """A condition that cannot be read or decided."""


class Condition:
    """A condition that has been read. It knows comparisons, `and`, `or`, `not`, `in` and lists. A
    reference in quotes becomes part of that text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._references: list[Reference] = []
        if len(text) > LONGEST:
            raise BadCondition(f"the condition is longer than {LONGEST} characters")
        # A name that nobody has written, for what stands in the place of a reference.
        self._name = "_r"
        while self._name in text:
            self._name += "_"
        marked = self._marked(text)
        try:
            self._tree = ast.parse(marked.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise BadCondition(
                f"the condition {text!r} cannot be read; write for example "
                '${steps.check.output.count} > 0 and ${params.mode} == "full"'
            ) from None
        try:
            self._check(self._tree, 1)
        except RecursionError:
            raise BadCondition(f"the condition is nested more than {DEEPEST} times") from None

    def holds(self, scope: Mapping[str, Any]) -> bool:
        """Whether it is true, with these values."""
        try:
            return bool(self._value(self._tree, scope))
        except TypeError as error:
            raise BadCondition(f"the condition {self.text!r} cannot be decided: {error}") from None

    def _marked(self, text: str) -> str:
        """The text with names in place of references, also of those that stand in quotes."""
        quote: str | None = None

        def marked(part: re.Match[str]) -> str:
            nonlocal quote
            if part["quote"] is not None and quote in (None, part["quote"]):
                quote = part["quote"] if quote is None else None
            if part["escaped"] is not None:
                return part["escaped"]
            if part["inside"] is None:
                return part[0]
            self._references.append(parse(part["inside"]))
            name = f"{self._name}{len(self._references) - 1}."
            return name if quote is not None else f" {name[:-1]} "

        return _PART.sub(marked, text)

    def _check(self, node: ast.expr, depth: int) -> None:
        if depth > DEEPEST:
            raise BadCondition(f"the condition is nested more than {DEEPEST} times")
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
            case ast.Name(id=name) if name in _CONSTANTS or self._number(name) is not None:
                parts = []
            case _:
                shown = self._replaced(ast.unparse(node), str)
                raise BadCondition(
                    f"the condition {self.text!r} contains {shown!r}, which is not known there; "
                    "use references, text in quotes, numbers, true, false, null, comparisons, "
                    "and, or, not, in"
                )
        for part in parts:
            self._check(part, depth + 1)

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
            case ast.Constant(value=str(text)):
                value = self._replaced(text, lambda each: as_text(look_up(each, scope)))
            case ast.Constant(value=value):
                pass
            case ast.Name(id=name) if name in _CONSTANTS:
                value = _CONSTANTS[name]
            case ast.Name(id=name) if (number := self._number(name)) is not None:
                value = look_up(self._references[number], scope)
            case _:
                raise AssertionError(ast.dump(node))  # `_check` has refused it
        return value

    def _replaced(self, text: str, by: Callable[[Reference], str]) -> str:
        """The text with something in place of each name that stands for a reference."""

        def one(found: re.Match[str]) -> str:
            number = int(found[1])
            return by(self._references[number]) if number < len(self._references) else found[0]

        return re.sub(rf"{self._name}(\d+)\.?", one, text)

    def _number(self, name: str) -> int | None:
        """The number of the reference that a name stands for, if it does."""
        found = re.fullmatch(rf"{self._name}(\d+)", name)
        number = len(self._references) if found is None else int(found[1])
        return number if number < len(self._references) else None
