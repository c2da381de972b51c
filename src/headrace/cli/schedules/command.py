"""`headrace schedules`: when tasks run by the clock; look, change, try."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.app import App
from headrace.cli import backend as backends
from headrace.cli.command import argument, group
from headrace.cli.enqueue.arguments import read_arguments
from headrace.cli.errors import notice
from headrace.cli.formatting import ago
from headrace.cli.output import is_terminal, print_fields, print_json, print_line, print_table
from headrace.cli.schedules.show import fields, next_table, past_tables, state_of
from headrace.cli.session import Session
from headrace.errors import InvalidInput, InvalidSetting, UnknownSchedule

if TYPE_CHECKING:
    from headrace.api_types.responses import ScheduleTimes
    from headrace.client import Client

commands = group("List, add, change and try schedules.")

MISSED = ("skip", "latest", "all")


@commands.command("list")
async def list_schedules(session: Session) -> None:
    """List schedules: when they fire, what comes next and how the last job went.

    \b
    Example:
      headrace schedules list
    """
    async with session.backend() as backend:
        found, now = await backends.list_schedules(backend), backends.time_now(backend)
    if session.json:
        print_json({"schedules": found})
    elif not found and is_terminal():
        print_line("No schedules yet; add one with: headrace schedules add")
    else:
        print_table(
            ("NAME", "STATE", "TASK", "NEXT", "LAST", "ZONE", "WHEN"),
            [
                (
                    each.name,
                    state_of(each),
                    each.task,
                    ago(each.next[0].utc, now) if each.next else "-",
                    each.last_runs[0].status if each.last_runs else "-",
                    each.tz,
                    each.words,
                )
                for each in found
            ],
        )


@commands.command("show")
@argument("name", metavar="NAME", help="The schedule.")
async def show(session: Session, *, name: str) -> None:
    """Show a schedule with its next five times and its last runs.

    \b
    Example:
      headrace schedules show nightly
    """
    async with session.backend() as backend:
        found, now = await backends.get_schedule(backend, name), backends.time_now(backend)
    if session.json:
        print_json(found)
        return
    print_fields(fields(found))
    next_table(found.next, now)
    past_tables(found, now)


@commands.command("add")
@argument("name", metavar="NAME", help="The schedule.")
@argument("expression", metavar="EXPRESSION", help='Five fields: "*/5 * * * *".')
@argument("task", metavar="TASK", help="The name of the task.")
@argument(
    "values", metavar="[NAME=VALUE]...", nargs=-1, help="Arguments: JSON if it parses, else text."
)
@click.option("--args", metavar="JSON", help="Arguments as JSON, @file, or - for stdin.")
@click.option("--tz", metavar="ZONE", default="UTC", help="Time zone.")
@click.option(
    "--missed",
    metavar="WHICH",
    default="latest",
    help="Missed times to run late: skip, latest or all.",
)
@click.option(
    "--overlap/--no-overlap", default=True, help="Fire also while an earlier job is unfinished."
)
@click.option("--disabled", is_flag=True, help="Add it disabled.")
@click.option("--replace", is_flag=True, help="Change the schedule of this name.")
@click.option("--config", metavar="FILE", help="Settings (default config/dispatcher.yaml).")
async def add(
    session: Session,
    *,
    name: str,
    expression: str,
    task: str,
    values: tuple[str, ...],
    args: str | None,
    tz: str,
    missed: str,
    overlap: bool,
    disabled: bool,
    replace: bool,
    config: str | None,
) -> None:
    """Add a schedule; it fires from its next time on.

    The arguments are checked against the task. Running dispatchers notice it within seconds.

    \b
    Examples:
      headrace schedules add nightly "0 3 * * *" report.build --tz Asia/Seoul
      headrace schedules add nightly "30 3 * * *" report.build days=1 --replace
    """
    if missed not in MISSED:
        raise InvalidInput(f"--missed must be skip, latest or all, got {missed!r}")
    async with session.backend(needs_app=True, task=task) as backend:
        if isinstance(backend, App):
            _read_settings(backend, config)
            more: dict[str, Any] = {"replace": replace, **backends.from_cli(backend)}
        else:
            await _check_server(backend, name, config, replace=replace)
            more = {}
        found = await backend.put_schedule(
            name,
            expression,
            task,
            tz=tz,
            params=read_arguments(values, args, session.settings.payload_limit),
            allow_overlap=overlap,
            enabled=not disabled,
            missed=missed,  # type: ignore[arg-type]
            **more,
        )
    _print(session, found, f"Schedule {name} runs {task} {found.words}, {tz}.")


def _read_settings(app: App, config: str | None) -> None:
    schedules = app.schedules  # says what to install if the extra is missing
    from headrace.dispatchers.cron.config import read_file  # noqa: PLC0415 - an extra

    if file := read_file(None if config is None else Path(config)):
        schedules.least_interval = file.settings.min_cron_interval_seconds


async def _check_server(client: Client, name: str, config: str | None, *, replace: bool) -> None:
    if config is not None:
        raise InvalidInput("--config is for an engine; the server of API_URL has its own")
    if not replace:
        with contextlib.suppress(UnknownSchedule):
            await client.schedule(name)
            raise InvalidSetting(
                f'a schedule "{name}" exists already; choose another name, or replace it '
                "(--replace)"
            )


@commands.command("remove")
@argument("name", metavar="NAME", help="The schedule.")
async def remove(session: Session, *, name: str) -> None:
    """Remove a schedule. Jobs that it created stay.

    \b
    Example:
      headrace schedules remove nightly
    """
    async with session.backend() as backend:
        origin = (await backends.get_schedule(backend, name)).origin
        await backend.remove_schedule(name)
    if origin.startswith(("code", "file")):
        notice(
            f"note: it is declared in {origin} and comes back when a dispatcher starts; "
            f"to keep it off: headrace schedules disable {name}"
        )
    _print(session, {"name": name, "removed": True}, f"Schedule {name} is removed.")


@commands.command("enable")
@argument("name", metavar="NAME", help="The schedule.")
async def enable(session: Session, *, name: str) -> None:
    """Enable a schedule again, from its next time on.

    \b
    Example:
      headrace schedules enable nightly
    """
    await _enable(session, name, enabled=True)


@commands.command("disable")
@argument("name", metavar="NAME", help="The schedule.")
async def disable(session: Session, *, name: str) -> None:
    """Disable a schedule. Times that pass meanwhile are skipped.

    \b
    Example:
      headrace schedules disable nightly
    """
    await _enable(session, name, enabled=False)


async def _enable(session: Session, name: str, *, enabled: bool) -> None:
    async with session.backend() as backend:
        await backend.enable_schedule(name, enabled)
    word = "enabled" if enabled else "disabled"
    _print(session, {"name": name, "enabled": enabled}, f"Schedule {name} is {word}.")


@commands.command("next")
@argument("what", metavar="NAME|EXPRESSION", help="A schedule, or an expression to try.")
@click.option("--tz", metavar="ZONE", help="Time zone of an expression (default UTC).")
@click.option("--count", "-n", metavar="N", type=int, default=5, help="Number of times to show.")
async def next_(session: Session, *, what: str, tz: str | None, count: int) -> None:
    """Show the next times of a schedule, or of an expression that you want to try.

    \b
    Examples:
      headrace schedules next nightly -n 10
      headrace schedules next "30 2 * * *" --tz Europe/Berlin
    """
    if not 1 <= count <= 1_000:
        raise InvalidInput(f"--count must be between 1 and 1000, got {count}")
    tried = " " in what.strip() or what.startswith("@")
    if tz is not None and not tried:
        raise InvalidInput("--tz is for an expression; a schedule has its own zone")
    if tried:
        now = datetime.now(UTC)
        found = _times_of(session, what, tz or "UTC", now, count)
    else:
        async with session.backend() as backend:
            found, now = await backend.next_times(what, count), backends.time_now(backend)
    if session.json:
        print_json(found)
        return
    print_line(f"{found.expression}: {found.words}, {found.tz}")
    next_table(found.next, now)


def _times_of(
    session: Session, expression: str, tz: str, now: datetime, count: int
) -> ScheduleTimes:
    _ = App(settings=session.settings).schedules  # says what to install if the extra is missing
    from headrace.admin.views import schedule_times  # noqa: PLC0415 - an extra
    from headrace.model.schedule import Schedule  # noqa: PLC0415 - an extra

    schedule = Schedule(name="tried", expression=expression, task="none", tz=tz).checked()
    return schedule_times(schedule, now, count)


@commands.command("trigger")
@argument("name", metavar="NAME", help="The schedule.")
@click.option("--force", is_flag=True, help="Even while an earlier job is unfinished.")
async def trigger(session: Session, *, name: str, force: bool) -> None:
    """Create a job of a schedule now and print its id.

    \b
    Example:
      headrace schedules trigger nightly --app shop.jobs
    """
    async with session.backend(needs_app=True) as backend:
        job = await backend.trigger_schedule(name, force=force, **backends.from_cli(backend))
    if session.json:
        print_json(job.to_dict())
    else:
        print_line(job.id)


def _print(session: Session, document: Any, text: str) -> None:
    if session.json:
        print_json(document)
    else:
        print_line(text)
