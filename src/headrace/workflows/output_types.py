"""What can be known of a step's output before it has run: from the return type of its task."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union, get_args, get_origin

import msgspec

from headrace.task import Task
from headrace.task.returned import kind_of_results

_PLAIN = (
    *(str, bytes, int, float, bool, decimal.Decimal, uuid.UUID, enum.Enum),
    *(datetime.date, datetime.time, datetime.timedelta),
)
_LISTS = (list, tuple, set, frozenset)


def returned(task: Task[..., Any]) -> Any:
    """The type that a task says it returns; `Any` if it does not."""
    try:
        return kind_of_results(task)
    except Exception:  # names that exist for type checkers only
        return Any


def nowhere(kind: Any, path: Sequence[str | int]) -> str | None:
    """Why a way into a value of this type leads nowhere; None if it may lead somewhere."""
    for segment in path:
        found = [_step(each, segment) for each in _choices(kind)]
        kinds = [each for each in found if each is not None]
        if found and not kinds:
            return f"{shown(kind)} has no {segment!r}"
        if len(kinds) != 1:
            return None
        [kind] = kinds
    return None


def shown(kind: Any) -> str:
    """A type as people write it."""
    plain = isinstance(kind, type) and not get_args(kind)
    return kind.__name__ if plain else str(kind).replace("typing.", "")


def never_a_list(kind: Any, path: Sequence[str | int]) -> bool:
    """Whether what a way leads to in a value of this type cannot be a list."""
    for segment in path:
        kinds = [_step(each, segment) for each in _choices(kind)]
        if len(kinds) != 1 or kinds[0] is None:
            return False
        [kind] = kinds
    choices = _choices(kind)
    return bool(choices) and not any(_may_be_list(each) for each in choices)


def _choices(kind: Any) -> list[Any]:
    """The types that a value of this type may have, beside null, from which all leads to null."""
    if get_origin(kind) in (Union, types.UnionType):
        return [each for part in get_args(kind) for each in _choices(part)]
    if get_origin(kind) is typing.Annotated:
        return _choices(get_args(kind)[0])
    return [] if kind in (None, type(None)) else [kind]


def _may_be_list(kind: Any) -> bool:
    base = get_origin(kind) or kind
    if not isinstance(base, type) or _fields(kind) is not None:
        return not isinstance(base, type)
    return not issubclass(base, (*_PLAIN, Mapping))


def _step(kind: Any, segment: str | int) -> Any:
    """The type of what a segment leads to, `Any` if that is not known; None if it is not there."""
    base, arguments = get_origin(kind) or kind, get_args(kind)
    fields = _fields(kind)
    found: Any = Any
    if fields is not None:
        found = fields.get(segment) if isinstance(segment, str) else None
    elif not isinstance(base, type):
        pass
    elif issubclass(base, _PLAIN):
        found = None
    elif issubclass(base, Mapping):
        found = arguments[1] if len(arguments) == 2 else Any
    elif issubclass(base, _LISTS) or base in (Sequence, Iterable):
        inside = arguments[0] if len(arguments) == 1 else Any
        found = None if isinstance(segment, str) else inside
    return found


def _fields(kind: Any) -> dict[str, Any] | None:
    """The fields of a type that has only these; None if others are possible."""
    known = typing.is_typeddict(kind) or (
        isinstance(kind, type)
        and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))
        # What is returned may be one of these.
        and not kind.__subclasses__()
    )
    try:
        hints = typing.get_type_hints(kind) if known else None
    except Exception:  # names that exist for type checkers only
        hints = None
    if hints is not None and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        if config.array_like:
            return None
        tag = {} if config.tag_field is None else {config.tag_field: str}
        return tag | {each.encode_name: hints[each.name] for each in msgspec.structs.fields(kind)}
    return hints
