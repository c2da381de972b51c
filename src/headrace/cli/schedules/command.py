"""`headrace schedules`: when tasks run by the clock; look, change, try."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headrace.app import App
from headrace.cli.command import command, group, whole
from headrace.cli.enqueue.arguments import read_arguments
from headrace.cli.errors import tell
from headrace.cli.formatting import ago
from headrace.cli.output import is_terminal, print_fields, print_json, print_line, print_table
from headrace.cli.schedules.backend import schedule_verbs, shown_times
from headrace.cli.schedules.show import fields, state_of, times_table
from headrace.cli.session import Session
from headrace.errors import InvalidInput

commands = group("List, add, change and try schedules.")

MISSED = ("skip", "latest", "all")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule.")]
Count = Annotated[
    int, typer.Option("--count", "-n", metavar="N", parser=whole, help="How many times.")
]


@command(commands, "list")
async def list_schedules(session: Session) -> None:
    """List schedules: when they fire, what comes next and how the last job went.

    \b
    Example:
      headrace schedules list
    """
    async with schedule_verbs(session) as verbs:
        found, now = await verbs.views(), verbs.now()
    if session.json:
        print_json({"schedules": found})
    elif not found and is_terminal():
        print_line("No schedules yet; add one with: headrace schedules add")
    else:
        print_table(
            ("NAME", "STATE", "TASK", "NEXT", "LAST", "ZONE", "WHEN"),
            [
                (
                    each["name"],
                    state_of(each),
                    each["task"],
                    ago(each["next"][0]["utc"], now) if each["next"] else "-",
                    each["last_runs"][0]["status"] if each["last_runs"] else "-",
                    each["tz"],
                    each["words"],
                )
                for each in found
            ],
        )


@command(commands, "show")
async def show(session: Session, *, name: Name) -> None:
    """Show a schedule in words, with its next five times and its last runs.

    \b
    Example:
      headrace schedules show nightly
    """
    async with schedule_verbs(session) as verbs:
        found, now = await verbs.view(name), verbs.now()
    if session.json:
        print_json(found)
        return
    print_fields(fields(found))
    times_table(found, now)


@command(commands, "add")
async def add(
    session: Session,
    *,
    name: Name,
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help='Five fields: "*/5 * * * *".')
    ],
    task: Annotated[str, typer.Argument(metavar="TASK", help="The name of the task.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="Arguments: JSON if it parses, else text."),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option("--args", metavar="JSON", help="Arguments as JSON, @file, or - for stdin."),
    ] = None,
    tz: Annotated[str, typer.Option("--tz", metavar="ZONE", help="Time zone (UTC).")] = "UTC",
    missed: Annotated[
        str,
        typer.Option(metavar="WHICH", help="Missed times to make up for: skip, latest, all."),
    ] = "latest",
    overlap: Annotated[
        bool,
        typer.Option("--overlap/--no-overlap", help="Also while an earlier job is unfinished."),
    ] = True,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not fire yet.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the schedule of this name.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Settings (config/dispatcher.yaml)."),
    ] = None,
) -> None:
    """Add a schedule; it fires from its next time on.

    The arguments are checked against the task. The dispatcher takes it up within its poll interval.

    \b
    Examples:
      headrace schedules add nightly "0 3 * * *" report.build days=1 --tz Asia/Seoul
      headrace schedules add nightly "30 3 * * *" report.build --no-overlap --replace
    """
    if missed not in MISSED:
        raise InvalidInput(f"--missed must be skip, latest or all, got {missed!r}")
    async with schedule_verbs(session, needs_app=True, task=task) as verbs:
        found = await verbs.add(
            name,
            replace=replace,
            config=config,
            expression=expression,
            task=task,
            tz=tz,
            params=read_arguments(values or [], args, session.settings.payload_limit),
            allow_overlap=overlap,
            enabled=not disabled,
            missed=missed,
        )
    _answer(session, found, f"Schedule {name} runs {task} {found['words']}, {tz}.")


@command(commands, "remove")
async def remove(session: Session, *, name: Name) -> None:
    """Forget a schedule. Jobs that it has made stay.

    \b
    Example:
      headrace schedules remove nightly
    """
    async with schedule_verbs(session) as verbs:
        declared = await verbs.remove(name)
    if declared is not None:
        tell(
            f"note: it is declared in {declared} and comes back when a dispatcher starts; "
            f"to keep it quiet: headrace schedules disable {name}"
        )
    _answer(session, {"name": name, "removed": True}, f"Schedule {name} is removed.")


@command(commands, "enable")
async def enable(session: Session, *, name: Name) -> None:
    """Let a schedule fire again, from its next time on.

    \b
    Example:
      headrace schedules enable nightly
    """
    await _enable(session, name, enabled=True)


@command(commands, "disable")
async def disable(session: Session, *, name: Name) -> None:
    """Keep a schedule quiet. Times that pass meanwhile are not made up for.

    \b
    Example:
      headrace schedules disable nightly
    """
    await _enable(session, name, enabled=False)


async def _enable(session: Session, name: str, *, enabled: bool) -> None:
    async with schedule_verbs(session) as verbs:
        await verbs.enable(name, enabled)
    word = "enabled" if enabled else "disabled"
    _answer(session, {"name": name, "enabled": enabled}, f"Schedule {name} is {word}.")


@command(commands, "next")
async def next_(
    session: Session,
    *,
    what: Annotated[
        str, typer.Argument(metavar="NAME|EXPRESSION", help="A schedule, or an expression to try.")
    ],
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Zone of an expression (UTC).")
    ] = None,
    count: Count = 5,
) -> None:
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
        found = shown_times(_tried(session, what, tz or "UTC"), now, count)
    else:
        async with schedule_verbs(session) as verbs:
            found, now = await verbs.next_times(what, count), verbs.now()
    if session.json:
        print_json(found)
        return
    print_line(f"{found['expression']}: {found['words']}, {found['tz']}")
    times_table(found | {"last_runs": [], "skipped": []}, now)


def _tried(session: Session, expression: str, tz: str) -> Any:
    _ = App(settings=session.settings).schedules  # tells how to install what is missing
    from headrace.model.schedule import Schedule  # noqa: PLC0415 - an extra

    return Schedule(name="tried", expression=expression, task="none", tz=tz).checked()


@command(commands, "trigger")
async def trigger(
    session: Session,
    *,
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Also while a job of it is unfinished.")
    ] = False,
) -> None:
    """Make a job of a schedule now, beside its own times; its id is the answer.

    \b
    Example:
      headrace schedules trigger nightly --app shop.jobs
    """
    async with schedule_verbs(session, needs_app=True) as verbs:
        job = await verbs.trigger(name, force=force)
    if session.json:
        print_json(job.to_dict())
    else:
        print_line(job.id)


def _answer(session: Session, document: dict[str, Any], text: str) -> None:
    if session.json:
        print_json(document)
    else:
        print_line(text)
