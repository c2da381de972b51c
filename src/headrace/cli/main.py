"""`headrace`: the root of the command line."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import sys
import threading
from typing import Annotated

import typer

from headrace.cli.command import AppName, Debug, Url, group
from headrace.cli.errors import report
from headrace.cli.services.first_process import leave_the_first_process
from headrace.cli.startup import LightGroup
from headrace.version import __version__

# In the order of the help. Only the module of the command that runs is imported, so that a worker
# carries nothing that it does not need.
COMMANDS = {
    "up": "headrace.cli.up.command",
    "worker": "headrace.cli.services.worker",
    "server": "headrace.cli.services.server",
    "dispatcher": "headrace.cli.dispatchers.command",
    "dead-letters": "headrace.cli.dispatchers.dead_letters",
    "enqueue": "headrace.cli.enqueue.command",
    "jobs": "headrace.cli.jobs.list",
    "artifacts": "headrace.cli.admin.artifacts",
    "running": "headrace.cli.jobs.running",
    "top": "headrace.cli.top.command",
    "queues": "headrace.cli.admin.queues",
    "lanes": "headrace.cli.admin.lanes",
    "schedules": "headrace.cli.schedules.command",
    "workflows": "headrace.cli.workflows.command",
    "workers": "headrace.cli.admin.workers",
    "keys": "headrace.cli.admin.keys",
    "prune": "headrace.cli.admin.prune",
    "migrate": "headrace.cli.admin.migrate",
    "bench": "headrace.cli.bench.command",
    "doctor": "headrace.cli.admin.doctor",
    "version": "headrace.cli.admin.version",
}


class Ordered(LightGroup):
    """Lists commands in the order of COMMANDS: first what one needs first."""

    def list_commands(self, ctx: object) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    leave_the_first_process(arguments)
    code = run(arguments)
    if "obstore" in sys.modules:
        # A thread of its own that comes back to Python while Python ends would abort the process,
        # after everything is done. So do what Python does before that, and leave.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # whoever read it has left
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command and answer its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not stop the answer.
            stream.reconfigure(errors="backslashreplace")
    try:
        root = typer.main.get_command(build(arguments))
        code = root.main(arguments or ["--help"], prog_name="headrace", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug="--debug" in arguments)
    return code if isinstance(code, int) else 0


def build(arguments: list[str]) -> typer.Typer:
    """The root with the commands that these arguments may need."""
    root = group("Durable background jobs on SQLite, PostgreSQL or Redis.\n\n" + EXAMPLE, Ordered)
    root.callback()(_root)
    named = [name for name in COMMANDS if name in arguments]
    asks_for_all = not arguments or arguments[0] not in COMMANDS
    for name in COMMANDS if asks_for_all else named:
        noun: typer.Typer = importlib.import_module(COMMANDS[name]).commands
        if len(noun.registered_commands) == 1 and noun.registered_commands[0].name == name:
            root.registered_commands.append(noun.registered_commands[0])
        else:
            root.add_typer(noun, name=name)
    return root


EXAMPLE = """\b
Start here:
  headrace up                                  see it at work, nothing to install
  headrace worker --app shop.jobs              run your tasks
  headrace enqueue send to=ada --app shop.jobs hand in a job
  headrace jobs list --status failed           see what went wrong
"""


def _show_version(asked: bool) -> None:
    if asked:
        print(f"headrace {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    url: Url = None,
    app: AppName = None,
    debug: Debug = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    context.obj = {"url": url, "app": app, "debug": debug}
