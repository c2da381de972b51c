"""Results as the annotations of their functions say: msgspec's types, dataclasses and models."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from headrace.task.codec import decode_hook

if TYPE_CHECKING:
    from headrace.task.task import Task


def decoder_of(function: Callable[..., Any]) -> msgspec.json.Decoder[Any]:
    """Return a decoder for the function's return annotation, or for any JSON without one."""
    try:
        return msgspec.json.Decoder(_returned(called_function(function)), dec_hook=decode_hook)
    except (TypeError, NameError, AttributeError):
        return msgspec.json.Decoder(Any)


def decoder_of_results(task: Task[..., Any]) -> msgspec.json.Decoder[Any]:
    """Return a decoder for the results of a task's jobs."""
    if task.policy.chunk is None:
        return decoder_of(task.function)
    try:
        return msgspec.json.Decoder(kind_of_results(task), dec_hook=decode_hook)
    except (TypeError, NameError, AttributeError):
        return msgspec.json.Decoder(Any)


def kind_of_results(task: Task[..., Any]) -> Any:
    """Return the type that jobs of a task return. A handler of chunks returns a list of them."""
    returned = _returned(called_function(task.function))
    if task.policy.chunk is None:
        return returned
    for part in _parts(returned):
        origin, inside = get_origin(part), get_args(part)
        if isinstance(origin, type) and issubclass(origin, Sequence) and inside:
            # An exception in the list is no result: it fails its job.
            kinds = [each for each in _parts(inside[0]) if not _is_error(each)]
            return functools.reduce(operator.or_, kinds) if kinds else Any
    return Any


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _returned(function: Callable[..., Any]) -> Any:
    """Return what a call returns: an instance for a class, otherwise the annotation."""
    if isinstance(function, type):
        return function
    if not inspect.isroutine(function) and not hasattr(function, "__annotations__"):
        function = type(function).__call__
    return get_type_hints(function, include_extras=True).get("return", Any)


def called_function(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a partial calls in the end."""
    while isinstance(call, functools.partial):
        call = call.func
    return call
