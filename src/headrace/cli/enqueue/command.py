"""`headrace enqueue`: hand in jobs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headrace.cli.command import command, group, whole
from headrace.cli.enqueue.arguments import read_arguments, read_object
from headrace.cli.enqueue.direct import StoreIn
from headrace.cli.enqueue.target import Door
from headrace.cli.formatting import parse_span, parse_time
from headrace.cli.session import Session
from headrace.errors import InvalidInput

commands = group("Hand in jobs.")


@command(commands, "enqueue")
async def enqueue(
    session: Session,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The name of the task.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="Arguments: JSON if it parses, else text."),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option("--args", metavar="JSON", help="Arguments as JSON, @file, or - for stdin."),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="FILE", help="A job for each line of JSON; - for stdin."),
    ] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="Another queue.")] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="N", parser=whole, help="Higher runs first.")
    ] = None,
    delay: Annotated[str | None, typer.Option(metavar="SPAN", help="Run in: 30s, 2h, …")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Run at, in ISO 8601.")] = None,
    lane: Annotated[
        str | None, typer.Option(metavar="LANE", help="Another lane; {name} is an argument.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(metavar="N", parser=whole, help="Tries after the first one.")
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option("--time-limit", metavar="SPAN", help="Of each attempt: 30s, 2h, … or none."),
    ] = None,
    meta: Annotated[
        str | None,
        typer.Option("--meta", metavar="JSON", help="What travels with the job, e.g. a trace."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="At most one job of the task has it. With --lines a template: import:{line}.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(metavar="N", parser=whole, help="So many jobs with the same arguments.")
    ] = 1,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result and print it.")] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Wait no longer than this.")
    ] = None,
) -> None:
    """Hand in a job; its id is the answer.

    The arguments are checked against the task, and the job is stored durably.

    With --lines every line is checked before the first job is stored.

    With API_URL the job goes to that server, which knows the tasks: no App is needed.

    \b
    Examples:
      headrace enqueue invoice.send customer_id=42 --app shop.jobs
      headrace enqueue invoice.send --args '{"customer_id": 42}' --delay 10m --key inv-42
      headrace enqueue invoice.send --lines customers.jsonl --key "run7:{customer_id}"
      headrace enqueue tour.hello name=Ada --wait
    """
    limit = None if timeout is None else parse_span("--timeout", timeout)
    if count < 1:
        raise InvalidInput(f"--count must be at least 1, got {count}")
    many = lines is not None or count > 1
    if many and wait:
        raise InvalidInput("--wait is for one job; leave out --count and --lines")
    if lines is not None and (values or args is not None or count > 1):
        raise InvalidInput("--lines brings the arguments; leave out NAME=VALUE, --args and --count")
    if count > 1 and key is not None:
        raise InvalidInput("--key makes at most one job; leave out --count")
    options: dict[str, Any] = {
        "queue": queue,
        "priority": priority,
        "delay": None if delay is None else parse_span("--delay", delay),
        "run_at": None if at is None else parse_time("--at", at),
        "lane": lane,
        "retries": retries,
        "meta": None if meta is None else read_object("--meta", meta),
    }
    if time_limit is not None:
        unlimited = time_limit == "none"
        options["timeout"] = None if unlimited else parse_span("--time-limit", time_limit)
    door = _door(session, task, options, key)
    if lines is not None:
        await door.lines(lines)
        return
    arguments = read_arguments(values or [], args, door.payload_limit)
    if many:
        await door.copies(arguments, count)
    else:
        await door.one(arguments, wait=wait, timeout=limit)


def _door(session: Session, task: str, options: dict[str, Any], key: str | None) -> Door:
    """The server of API_URL, or the engine of the App that knows the task."""
    if not session.remote:
        return StoreIn(session, task, options, key=key)
    from headrace.cli.enqueue.http import HandIn  # noqa: PLC0415 - only those with a server pay for it

    return HandIn(session, task, options, key=key)
