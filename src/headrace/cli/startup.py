"""Keeps typer from importing pydantic, and httpx from importing a command line of its own.

Typer hands every value to pydantic, which costs a command 0.2 s and a worker 11 MB. All our options
are text, flags, or have a parser of their own, so there is nothing for it to do. If a version of
typer converts values in another way, this has no effect and the command line only starts slower.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class PlainValues:
    """Hands values on as they were typed, through the option's own parser if it has one."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """What typer calls for the value of a parameter."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        parser = param.type_descriptor.parameter_info.parser
        if several:
            return list(value)
        if parser is None or not isinstance(value, str):
            return value
        try:
            return parser(value)
        except typer.BadParameter as error:
            error.param, error.ctx = param, ctx
            raise


class LightCommand(TyperCommand):
    """A command whose values are not converted."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters, with the help option."""
        return lightened(super().get_params(ctx))


class LightGroup(TyperGroup):
    """A noun, or the root, whose values are not converted."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters, with the help option."""
        return lightened(super().get_params(ctx))


def lighten_httpx() -> None:
    """Let `import httpx` leave out its command line, with which it loads half of rich and click."""
    name = "httpx._main"
    if "httpx" not in sys.modules:
        module = types.ModuleType(name)
        module.main = lambda: None  # type: ignore[attr-defined]
        sys.modules.setdefault(name, module)


def lightened(params: list[Any]) -> list[Any]:
    """The same parameters with a light conversion, where nothing else is set."""
    for param in params:
        if getattr(param, "_runtime_param", False) is None:
            param._runtime_param = PlainValues()
    return params
