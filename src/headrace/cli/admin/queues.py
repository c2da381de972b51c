"""`headrace queues`: list, pause and resume queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.backend import by_cli, time_now
from headrace.cli.command import argument, group, option
from headrace.cli.errors import notice
from headrace.cli.formatting import parse_span, parse_time, shown_time, span
from headrace.cli.output import Columns, print_line
from headrace.cli.session import CliSession
from headrace.model.names import check_name
from headrace.model.views import QueueView
from headrace.monitor.words import paused_words

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

commands = group("List queues; pause and resume them.")

QUEUES: Columns[QueueView] = {
    "QUEUE": lambda queue: queue.name,
    "STATE": lambda queue: "paused" if queue.paused else "open",
    ">READY": lambda queue: f"{queue.ready:,}",
    ">WAITING": lambda queue: f"{queue.waiting:,}",
    ">SCHEDULED": lambda queue: f"{queue.scheduled:,}",
    ">RUNNING": lambda queue: f"{queue.running:,}",
    ">OLDEST": lambda queue: "-" if queue.oldest_age is None else span(queue.oldest_age),
}


@commands.command("list")
async def list_queues(session: CliSession) -> None:
    """List queues with their depth and the age of the oldest pending job.

    headrace queues list
    """
    async with session.backend() as backend:
        queues = await backend.queues()
    empty = "No queues yet; a queue is there once a job was put in it."
    session.show_list("queues", queues, QUEUES, empty=empty)
    if session.json:
        return
    for queue in queues:
        if described := paused_words(queue, time_now(backend)):
            print_line(f"{queue.name} {described}")


@commands.command("pause")
@argument("name", "NAME", "The queue.")
@option("--reason", "TEXT", "Why; others are shown it.")
@option("--for", "SPAN", "Resume it after this time: 30m, 2h, …", default=None)
@option("--until", "TIME", "Resume it at this time, in ISO 8601.")
async def pause(
    session: CliSession, *, name: str, reason: str | None, until: str | None, **given: str | None
) -> None:
    """Pause a queue: its jobs are not started. Running jobs go on, new ones are stored.

    With --for or --until it is resumed by itself, as long as a worker runs.

      headrace queues pause mail
      headrace queues pause mail --reason "provider is down" --for 30m
    """
    span_given = given["for"]
    async with session.backend() as backend:
        known = await _known(backend, name)
        paused = await backend.pause(
            name,
            reason=reason,
            until=None if until is None else parse_time("--until", until),
            duration=None if span_given is None else parse_span("--for", span_given),
            **by_cli(backend),
        )
    _tell_unknown(name, known)
    end = paused.paused_until
    shown = "" if end is None else f" until {shown_time(end)}"
    session.show(paused, f"Queue {name} is paused{shown}.")


@commands.command("resume")
@argument("name", "NAME", "The queue.")
async def resume(session: CliSession, *, name: str) -> None:
    """Resume a queue: its jobs are started again.

    headrace queues resume mail
    """
    async with session.backend() as backend:
        known = await _known(backend, name)
        resumed = await backend.resume(name)
    _tell_unknown(name, known)
    session.show(resumed, f"Queue {name} is open.")


async def _known(backend: Backend, name: str) -> set[str]:
    check_name("queue", name)
    return {queue.name for queue in await backend.queues()}


def _tell_unknown(name: str, known: set[str]) -> None:
    if name not in known:
        others = f"; known: {', '.join(sorted(known))}" if known else ""
        notice(f'note: queue "{name}" is not known; it is once a job is put in it{others}')
