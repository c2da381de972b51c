"""`headrace`: the root of the command line."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

import click
from click import shell_completion

from headrace.cli.command import SETTINGS, CommandGroup, root_options
from headrace.cli.errors import report
from headrace.cli.services.first_process import leave_the_first_process
from headrace.installed_bundles import installed
from headrace.version import __version__

# In the order of the help: where a command is, and what it does. Only the module of the command
# that runs is imported, so that `--help` is fast and a worker carries nothing it does not need.
COMMANDS = {
    "up": ("up.command:up", "Start a worker, the dashboard, schedules and a short tour."),
    "worker": ("services.worker:worker", "Run your tasks until SIGTERM or Ctrl-C."),
    "server": ("services.server:server", "Serve the HTTP API until SIGTERM or Ctrl-C."),
    "dispatcher": ("dispatchers.command:commands", "Create jobs by cron or from a broker."),
    "dead-letters": (
        "dispatchers.dead_letters:commands",
        "List, show, replay and remove messages that made no job.",
    ),
    "events": ("publishing.events:commands", "Show the types of events that jobs publish."),
    "destinations": (
        "publishing.destinations:commands",
        "Add, list, show, test and remove destinations of events.",
    ),
    "enqueue": ("enqueue.command:enqueue", "Enqueue a job and print its id."),
    "jobs": ("jobs.list:commands", "List, show, watch, cancel and retry jobs."),
    "bulk": (
        "jobs.bulk:commands",
        "List, show, stop and resume bulk actions in the background.",
    ),
    "artifacts": ("admin.artifacts:commands", "List, download and keep the files of jobs."),
    "running": ("admin.running:running", "Show what runs now and what waits."),
    "status": ("admin.status:status", "Say what is wrong now, and what to do about it."),
    "errors": ("admin.status:errors", "Show what jobs failed with, in groups of the same error."),
    "top": ("top.command:top", "Show queues, jobs, lanes and workers, live."),
    "queues": ("admin.queues:commands", "List queues; pause and resume them."),
    "series": ("admin.series:series", "Show what was done over time, and how deep queues were."),
    "lanes": ("admin.lanes:lanes", "Show lanes: who holds them, how many wait."),
    "rates": ("admin.rates:commands", "List rates and set them; hold lanes and queues."),
    "breakers": (
        "admin.breakers:commands",
        "List open circuit breakers; open and close them.",
    ),
    "alerts": ("alerts.command:commands", "List, add, silence, test and check alerts."),
    "schedules": ("schedules:commands", "List, add, change and try schedules."),
    "workflows": ("workflows:commands", "List, check and run workflows, and follow their runs."),
    "workers": ("admin.workers:workers", "Show workers, their queues and their load."),
    "keys": (
        "admin.keys:commands",
        "Create and revoke keys of the API; rotate encryption keys.",
    ),
    "prune": ("admin.prune:prune", "Delete old finished jobs."),
    "bundles": ("bundles.command:bundles", "List installed bundles and what they bring."),
    "migrate": (
        "admin.migrate:migrate",
        "Bring the store, and the tables of bundles, up to date.",
    ),
    "bench": ("bench.command:bench", "Measure how fast your engine stores and runs jobs."),
    "doctor": ("admin.doctor:doctor", "Check that all is well, and say what to do if not."),
    "completion": ("admin.completion:completion", "Print the completion script of your shell."),
    "version": ("admin.doctor:version", "Show versions, for a bug report."),
}

HELP = """Durable background jobs on SQLite, PostgreSQL or Redis.

\b
Start here:
  headrace up                                  see it at work at once
  headrace worker --app shop.jobs              run your tasks
  headrace enqueue send to=ada --app shop.jobs enqueue a job
  headrace jobs list --status failed           see what went wrong
"""


class Root(CommandGroup):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _bundle_group(cmd_name)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(f"headrace.cli.{module}"), attribute)
        return found

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[shell_completion.CompletionItem]:
        """Return commands that begin like this, without importing any."""
        known = {name: summary for name, (_, summary) in COMMANDS.items()}
        known |= {name: "A bundle." for name in installed() if name not in known}
        found = [
            shell_completion.CompletionItem(name, help=summary)
            for name, summary in known.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])
        if bundles := installed():
            from headrace.bundles.discover import summary_of  # noqa: PLC0415 - if there are any

            with formatter.section("Commands of bundles"):
                formatter.write_dl([(name, summary_of(name)) for name in bundles])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = None if args[0] in COMMANDS else self.get_command(ctx, args[0])
        return (args[0], found, args[1:]) if found else super().resolve_command(ctx, args)


def _bundle_group(name: str) -> click.Command | None:
    if name not in installed():
        return None
    from headrace.cli.bundles.adopt import bundle_group  # noqa: PLC0415 - only if it is used

    return bundle_group(name)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    leave_the_first_process(arguments)
    sys.exit(run(arguments))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not stop the output.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = build().main(arguments or ["--help"], prog_name="headrace", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug="--debug" in arguments)
    return code if isinstance(code, int) else 0


def build() -> Root:
    """Return the root with its options; commands are found when they are asked for."""
    version = click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_show_version,
        help="Show the version.",
    )
    return Root(
        help=HELP,
        params=[*root_options(), version],
        callback=_keep_options,
        context_settings=SETTINGS,
    )


def _show_version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"headrace {__version__}")
        context.exit()


def _keep_options(**options: Any) -> None:
    click.get_current_context().obj = options
