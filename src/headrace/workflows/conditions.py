"""Conditions of steps: `${steps.count.output} > 10 and not ${params.dry}`. Nothing is executed."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import InvalidInput
from headrace.workflows.references import Reference, look_up, parse

LONGEST = 2_000

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
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
