"""`headrace enqueue`: hand in jobs."""

from __future__ import annotations

from typing import Any

import click

from headrace.cli.command import Command, argument
from headrace.cli.enqueue.arguments import read_arguments, read_object
from headrace.cli.enqueue.target import EnqueueTarget
from headrace.cli.formatting import parse_span, parse_time
from headrace.cli.session import Session
from headrace.errors import InvalidInput


@click.command("enqueue", cls=Command)
@argument("task", metavar="TASK", help="The name of the task.")
@argument(
    "values", metavar="[NAME=VALUE]...", nargs=-1, help="Arguments: JSON if it parses, else text."
)
@click.option("--args", metavar="JSON", help="Arguments as JSON, @file, or - for stdin.")
@click.option("--lines", metavar="FILE", help="Enqueue a job for each line of JSON; - for stdin.")
@click.option("--queue", metavar="NAME", help="Use this queue instead of the task's.")
@click.option("--priority", metavar="N", type=int, help="Higher runs first.")
@click.option("--delay", metavar="SPAN", help="Run after: 30s, 2h, …")
@click.option("--at", metavar="TIME", help="Run at this time (ISO 8601).")
@click.option("--lane", metavar="LANE", help="Use this lane; {name} stands for an argument.")
@click.option("--retries", metavar="N", type=int, help="Retries after the first attempt.")
@click.option(
    "--time-limit", metavar="SPAN", help="Time limit of each attempt: 30s, 2h, … or none."
)
@click.option("--meta", metavar="JSON", help="Metadata stored with the job, e.g. a trace.")
@click.option(
    "--key",
    metavar="KEY",
    help="Idempotency key: at most one job has it. With --lines a template: import:{line}.",
)
@click.option(
    "--count",
    metavar="N",
    type=int,
    default=1,
    help="Enqueue this many jobs with the same arguments.",
)
@click.option("--wait", is_flag=True, help="Wait for the result and print it.")
@click.option("--timeout", metavar="SPAN", help="Wait at most this long.")
async def enqueue(
    session: Session,
    *,
    task: str,
    values: tuple[str, ...],
    args: str | None,
    lines: str | None,
    queue: str | None,
    priority: int | None,
    delay: str | None,
    at: str | None,
    lane: str | None,
    retries: int | None,
    time_limit: str | None,
    meta: str | None,
    key: str | None,
    count: int,
    wait: bool,
    timeout: str | None,
) -> None:
    """Enqueue a job and print its id.

    The arguments are checked against the task, and the job is stored durably.

    With --lines every line is checked before the first job is stored.

    With API_URL the job goes to that server, which knows the tasks: no App is needed.

    \b
    Examples:
      headrace enqueue invoice.send customer_id=42 --app shop.jobs
      headrace enqueue invoice.send --args '{"customer_id": 42}' --delay 10m
      headrace enqueue invoice.send --lines all.jsonl --key "r7:{customer_id}"
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
    async with session.backend(needs_app=True, task=task) as backend:
        target = EnqueueTarget(session, backend, task, options, key=key)
        if lines is not None:
            await target.enqueue_lines(lines)
            return
        arguments = read_arguments(values, args, session.settings.payload_limit)
        if many:
            await target.enqueue_copies(arguments, count)
        else:
            await target.enqueue(arguments, wait=wait, timeout=limit)
