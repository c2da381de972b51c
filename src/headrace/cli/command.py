"""How a function becomes a command: the shared options, the event loop, the exit code."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from headrace.cli.errors import hush
from headrace.cli.session import Session
from headrace.cli.startup import LightCommand, LightGroup

P = ParamSpec("P")
Body = Callable[Concatenate[Session, P], Coroutine[Any, Any, int | None]]

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Where jobs live; wins over HEADRACE_URL."),
]
AppName = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE[:ATTR]", help="Your App; wins over HEADRACE_APP."),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def whole(text: str) -> int:
    """A whole number, or an error that names what was typed."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a whole number") from None


_SHARED = {
    "json": (Json, False),
    "url": (Url, None),
    "app": (AppName, None),
    "debug": (Debug, False),
}


def group(help: str, kind: type[LightGroup] = LightGroup) -> typer.Typer:
    """A noun, or the root: plain help that starts fast and pipes well."""
    return typer.Typer(
        cls=kind,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def command(noun: typer.Typer, name: str) -> Callable[[Body[P]], Body[P]]:
    """Add a verb. Its function is given a Session first and may answer an exit code."""

    def register(body: Body[P]) -> Body[P]:
        noun.command(name, cls=LightCommand)(_runner(body))
        return body

    return register


def _runner(body: Body[P]) -> Callable[..., int]:
    @functools.wraps(body)
    def run(context: typer.Context, **given: Any) -> int:
        shared = dict(context.obj or {})
        for option in _SHARED:
            value = given.pop(option)
            if value:
                shared[option] = value
        try:
            code = asyncio.run(body(Session(**shared), **given))  # type: ignore[call-arg]
            sys.stdout.flush()
        except BrokenPipeError:
            return hush()
        return code or 0

    # Typer reads the signature: the verb's own options, then those that all verbs share.
    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
    parameter = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    shared = [
        parameter(option, default=default, annotation=kind)
        for option, (kind, default) in _SHARED.items()
    ]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    context = parameter("context", annotation=typer.Context)
    del run.__wrapped__  # or typer would look through to the body's own signature
    run.__annotations__ = {each.name: each.annotation for each in [context, *keyword, *shared]}
    run.__signature__ = inspect.Signature([context, *keyword, *shared])  # type: ignore[attr-defined]
    return run
