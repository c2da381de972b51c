"""How an async function becomes a command: shared options, event loop, exit code."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import click

from headrace.cli.errors import exit_on_closed_pipe
from headrace.cli.formatting import TimeZone
from headrace.cli.session import CliSession
from headrace.suggest import nearest

F = TypeVar("F", bound=Callable[..., Any])
Body = Callable[..., Coroutine[Any, Any, int | None]]

# Longer than the first sentence of any help.
WHOLE = 1_000
# Defaults are shown, and `-h` is short for `--help`.
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True}


def root_options() -> list[click.Option]:
    """Return the options that may stand before the command as well as after it."""
    return [
        click.Option(["--url"], metavar="URL", help="Where jobs live; overrides HEADRACE_URL."),
        click.Option(["--app"], metavar="MODULE[:ATTR]", help="Your App; overrides HEADRACE_APP."),
        click.Option(["--local-time"], is_flag=True, help="Show times in your zone, not in UTC."),
        click.Option(["--debug"], is_flag=True, help="Show the traceback of an error."),
    ]


class Argument(click.Argument):
    """An argument with a line in the help; click itself has that only since 8.5."""

    def __init__(self, names: list[str], *, description: str, **options: Any) -> None:
        super().__init__(names, **options)
        self.description = description

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.make_metavar(ctx), self.description


def argument(name: str, metavar: str, help: str, **more: Any) -> Callable[[F], F]:
    """Add an argument to a command."""
    return click.argument(name, cls=Argument, metavar=metavar, description=help, **more)


def option(names: str, metavar: str, help: str, **more: Any) -> Callable[[F], F]:
    """Add an option with a value to a command. Several names are separated by blanks."""
    return click.option(*names.split(), metavar=metavar, help=help, **more)


def flag(names: str, help: str) -> Callable[[F], F]:
    """Add an option without a value to a command."""
    return click.option(*names.split(), is_flag=True, help=help)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator that adds several options and arguments, in this order."""

    def add(body: F) -> F:
        for option in reversed(options):
            body = option(body)
        return body

    return add


class Command(click.Command):
    """A command. Its function is given a CliSession first, and may return an exit code.

    A last paragraph of its help that begins with `headrace` has examples, one in a line.
    """

    def __init__(self, name: str | None, *, callback: Body, help: str, **options: Any) -> None:
        text, _, last = (help := inspect.cleandoc(help)).rpartition("\n\n")
        if last.lstrip().startswith("headrace "):
            examples = last.splitlines()
            title = "Example:" if len(examples) == 1 else "Examples:"
            shown = "\n".join(f"  {each.strip()}" for each in examples)
            help = f"{text}\n\n\b\n{title}\n{shown}"
        options["help"] = help
        options["callback"] = functools.partial(run_body, callback, CliSession)
        options["context_settings"] = SETTINGS
        super().__init__(name, **options)
        self.params.append(click.Option(["--json"], is_flag=True, help="Print JSON."))
        self.params += root_options()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, kind in (("Arguments", click.Argument), ("Options", click.Option)):
            params = [each for each in self.get_params(ctx) if isinstance(each, kind)]
            if rows := [record for each in params if (record := each.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class CommandGroup(click.Group):
    """A noun: its verbs are listed in the order in which they are added."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs, each with a whole sentence: click would cut it to one line."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(WHOLE)) for name, each in found if each is not None]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            near = "".join(f" Did you mean '{each}'?" for each in nearest(args[0], known))
            ctx.fail(f"No such command '{args[0]}'.{near}")
        return super().resolve_command(ctx, args)


def add_switch(
    commands: CommandGroup,
    body: Body,
    verbs: Mapping[str, tuple[bool, str]],
    *,
    argument: Callable[[Body], Body],
    example: str,
) -> None:
    """Add two verbs that differ in what they set: each calls `body` with `on`, True or False."""
    for verb, (on, help) in verbs.items():
        about = f"{help}\n\n  {example.format(verb)}"
        commands.command(verb, help=about)(argument(functools.partial(body, on=on)))


def group(help: str) -> CommandGroup:
    """Return a noun without verbs."""
    return CommandGroup(help=help, no_args_is_help=True, context_settings=SETTINGS)


def run_body(body: Body, session: type[CliSession], /, **given: Any) -> int:
    """Run the coroutine of a command with a session made of the shared options."""
    shared = dict(click.get_current_context().obj or {})
    asked = (given.pop("local_time", False), shared.pop("local_time", False))
    TimeZone.local = any(asked)
    for option in ("json", "url", "app", "debug", "bundle"):
        if value := given.pop(option, None):
            shared[option] = value
    try:
        code = asyncio.run(body(session(**shared), **given))
        sys.stdout.flush()
    except BrokenPipeError:
        return exit_on_closed_pipe()
    return code or 0
