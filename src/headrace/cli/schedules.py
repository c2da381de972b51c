"""`headrace schedules`: list, add, change and try schedules."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.app import App
from headrace.cli import backend as backends
from headrace.cli.command import add_switch, argument, flag, group, option
from headrace.cli.enqueue.arguments import argument_options, read_arguments
from headrace.cli.errors import notice
from headrace.cli.formatting import ago, plural, shown_time, span
from headrace.cli.output import Columns, print_fields, print_json, print_line, print_section
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput, InvalidSetting, UnknownSchedule
from headrace.monitor.words import LATE, schedule_state

if TYPE_CHECKING:
    from headrace.api_types.responses import (
        ScheduleRun,
        ScheduleTime,
        ScheduleTimes,
        ScheduleView,
        SkippedTimes,
    )
    from headrace.client import Client

commands = group("List, add, change and try schedules.")

SCHEDULE = argument("name", "NAME", "The schedule.")
MISSED = ("skip", "latest", "all")
DISPATCHER = "headrace dispatcher cron --app …"
# A dispatcher that is well fires within moments.


@commands.command("list")
async def list_schedules(session: CliSession) -> None:
    """List schedules: when they fire, what comes next and how the last job went.

    headrace schedules list
    """
    async with session.backend() as backend:
        found, now = await backends.list_schedules(backend), backends.time_now(backend)
    columns: Columns[ScheduleView] = {
        "NAME": lambda each: each.name,
        "STATE": schedule_state,
        "TASK": lambda each: each.task,
        "NEXT": lambda each: ago(each.next[0].utc, now) if each.next else "-",
        "LAST": lambda each: each.last_runs[0].status if each.last_runs else "-",
        "ZONE": lambda each: each.tz,
        "WHEN": lambda each: each.words,
    }
    empty = "No schedules yet; add one with: headrace schedules add"
    session.show_list("schedules", found, columns, empty=empty)
    unstored = sum(not each.stored for each in found)
    if unstored:
        notice(
            f"note: {plural(unstored, 'schedule')} declared in code and not stored yet; "
            f"what fires them: {session.advice(DISPATCHER)}"
        )


@commands.command("show")
@SCHEDULE
async def show(session: CliSession, *, name: str) -> None:
    """Show a schedule with its next five times and its last runs.

    headrace schedules show nightly
    """
    async with session.backend() as backend:
        found, now = await backends.get_schedule(backend, name), backends.time_now(backend)
    if session.json:
        print_json(found)
        return
    print_fields(_fields(found, session.advice(DISPATCHER)))
    _print_next(found.next, now)
    _print_past(found, now)


@commands.command("add")
@SCHEDULE
@argument("expression", "EXPRESSION", 'Five fields: "*/5 * * * *".')
@argument("task", "TASK", "The name of the task.")
@argument_options
@option("--tz", "ZONE", "Time zone.", default="UTC")
@option("--missed", "WHICH", "Missed times to run late: skip, latest or all.", default="latest")
@click.option(
    "--overlap/--no-overlap", default=True, help="Fire also while an earlier job is unfinished."
)
@flag("--disabled", "Add it disabled.")
@flag("--replace", "Change the schedule of this name.")
@option("--config", "FILE", "Settings (default config/dispatcher.yaml).")
async def add(
    session: CliSession,
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
    session.show(found, f"Schedule {name} runs {task} {found.words}, {tz}.")


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
@SCHEDULE
async def remove(session: CliSession, *, name: str) -> None:
    """Remove a schedule. Jobs that it created stay.

    headrace schedules remove nightly
    """
    async with session.backend() as backend:
        try:
            origin = (await backends.get_schedule(backend, name)).origin
        except UnknownSchedule:
            raise
        except InvalidInput:
            origin = ""  # it cannot be read, and is removed all the same
        await backend.remove_schedule(name)
    if origin.startswith(("code", "file")):
        notice(
            f"note: it is declared in {origin} and comes back when a dispatcher starts; "
            f"to keep it off: headrace schedules disable {name}"
        )
    session.show({"name": name, "removed": True}, f"Schedule {name} is removed.")


async def _enable(session: CliSession, *, name: str, on: bool) -> None:
    async with session.backend() as backend:
        await backend.enable_schedule(name, on)
    state = "enabled" if on else "disabled"
    session.show({"name": name, "enabled": on}, f"Schedule {name} is {state}.")


add_switch(
    commands,
    _enable,
    {
        "enable": (True, "Enable a schedule again, from its next time on."),
        "disable": (False, "Disable a schedule. Times that pass meanwhile are skipped."),
    },
    argument=SCHEDULE,
    example="headrace schedules {} nightly",
)


@commands.command("next")
@argument("what", "NAME|EXPRESSION", "A schedule, or an expression to try.")
@option("--tz", "ZONE", "Time zone of an expression (default UTC).")
@option("--count -n", "N", "Number of times to show.", type=int, default=5)
async def next_(session: CliSession, *, what: str, tz: str | None, count: int) -> None:
    """Show the next times of a schedule, or of an expression that you want to try.

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
    _print_next(found.next, now)


def _times_of(
    session: CliSession, expression: str, tz: str, now: datetime, count: int
) -> ScheduleTimes:
    _ = App(settings=session.settings).schedules  # says what to install if the extra is missing
    from headrace.dispatchers.cron.views import schedule_times  # noqa: PLC0415 - an extra
    from headrace.model.schedules.schedule import Schedule  # noqa: PLC0415 - an extra

    schedule = Schedule(name="tried", expression=expression, task="none", tz=tz).checked()
    return schedule_times(schedule, now, count)


@commands.command("trigger")
@SCHEDULE
@flag("--force", "Even while an earlier job is unfinished.")
async def trigger(session: CliSession, *, name: str, force: bool) -> None:
    """Create a job of a schedule now and print its id.

    headrace schedules trigger nightly --app shop.jobs
    """
    async with session.backend(needs_app=True) as backend:
        job = await backend.trigger_schedule(name, force=force, **backends.from_cli(backend))
    session.show(job.to_dict(), job.id)


def _fields(found: ScheduleView, dispatcher: str) -> list[tuple[str, object]]:
    """Return its definition, one line for each part."""
    late = found.late_seconds
    return [
        ("Schedule", found.name),
        ("State", schedule_state(found)),
        (
            "Late",
            f"by {span(late)}: no dispatcher runs that knows the task ({dispatcher})"
            if late > LATE
            else None,
        ),
        (
            "Note",
            None
            if found.stored
            else f"declared in code; it fires once a dispatcher has stored it: {dispatcher}",
        ),
        ("When", f"{found.words}, {found.tz}"),
        ("Expression", found.expression),
        ("Task", found.task),
        ("Params", msgspec.json.encode(found.params).decode() if found.params else None),
        ("Overlap", "allowed" if found.allow_overlap else "no: nothing while a job of it runs"),
        ("Missed", found.missed),
        ("From", found.origin),
    ]


def _print_next(times: Sequence[ScheduleTime], now: datetime) -> None:
    columns: Columns[ScheduleTime] = {
        "NEXT": lambda each: f"{each.local:%a %Y-%m-%d %H:%M:%S %Z}",
        "AT": lambda each: shown_time(each.utc),
        "IN": lambda each: ago(each.utc, now),
    }
    print_section(columns, times)


def _print_past(found: ScheduleView, now: datetime) -> None:
    """Print the last runs, and the times that were skipped."""
    runs: Columns[ScheduleRun] = {
        "LAST RUNS": lambda each: each.job_id,
        "STATUS": lambda each: each.status,
        "FOR": lambda each: "triggered" if each.time is None else shown_time(each.time),
        "MADE": lambda each: ago(each.made_at, now),
    }
    skips: Columns[SkippedTimes] = {
        "SKIPPED": lambda each: each.reason,
        "FIRST": lambda each: shown_time(each.first),
        "LAST": lambda each: shown_time(each.last),
        "TIMES": lambda each: plural(each.count, "time"),
    }
    print_section(runs, found.last_runs)
    print_section(skips, found.skipped)
