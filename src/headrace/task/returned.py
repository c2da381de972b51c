"""Results as the annotations of their functions say: msgspec's types, dataclasses and models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from headrace.task.codec import decode_hook


def decoder_of(function: Callable[..., Any]) -> msgspec.json.Decoder[Any]:
    """Return a decoder for the function's return annotation, or for any JSON without one."""
    try:
        return msgspec.json.Decoder(_returned(called_function(function)), dec_hook=decode_hook)
    except (TypeError, NameError, AttributeError):
        return msgspec.json.Decoder(Any)


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
