"""`headrace queues`, `lanes`, `workers` and `running`: what there is, and what goes on in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headrace.cli.backend import by_cli, running_now, time_now
from headrace.cli.command import Command, argument, group, option
from headrace.cli.errors import notice
from headrace.cli.formatting import (
    ago,
    bytes_of,
    parse_span,
    parse_time,
    plural,
    shown_time,
    span,
    worker_state,
)
from headrace.cli.output import Columns, print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.job import Job
from headrace.model.names import check_name, check_text
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
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
LANES: Columns[LaneView] = {
    "LANE": lambda lane: lane.lane,
    "QUEUE": lambda lane: lane.queue,
    ">USED": lambda lane: f"{lane.used}/{lane.width}",
    ">WAITING": lambda lane: f"{lane.waiting:,}",
    ">OLDEST": lambda lane: "-" if lane.oldest_age is None else span(lane.oldest_age),
    "HOLDERS": lambda lane: _holders(lane.holders),
}
WORKERS: Columns[Worker] = {
    "WORKER": lambda worker: worker.name,
    "STATE": worker_state,
    "QUEUES": lambda worker: ",".join(worker.queues) or "all",
    ">BUSY": lambda worker: f"{worker.running}/{worker.slots}",
    ">MEMORY": lambda worker: bytes_of(worker.memory_bytes),
    ">CPU": lambda worker: f"{worker.cpu_percent:.0f}%",
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


@click.command("lanes", cls=Command)
@option("--queue", "NAME", "Only this queue.")
@option("--lane", "LANE", "Only this lane, e.g. user:42.")
@option("--limit -n", "N", "Show at most this many.", type=int, default=100)
async def lanes(session: CliSession, *, queue: str | None, lane: str | None, limit: int) -> None:
    """Show lanes: who holds them, how many wait.

    headrace lanes --queue scans
    """
    if not 1 <= limit <= 10_000:
        raise InvalidInput(f"--limit must be between 1 and 10000, got {limit}")
    async with session.backend() as backend:
        found = await backend.lanes(
            queue=None if queue is None else check_name("queue", queue),
            lane=None if lane is None else check_text("lane", lane),
            limit=limit,
        )
    session.show_list("lanes", found, LANES, empty="No lane is held or waited for.")


def _holders(holders: tuple[str, ...]) -> str:
    more = f" and {len(holders) - 3} more" if len(holders) > 3 else ""
    return " ".join(holders[:3]) + more or "-"


@click.command("workers", cls=Command)
async def workers(session: CliSession) -> None:
    """Show workers, their queues and their load.

    headrace workers
    """
    async with session.backend() as backend:
        found, now = await backend.workers(), time_now(backend)
    columns: Columns[Worker] = {
        **WORKERS,
        "HEARTBEAT": lambda worker: ago(worker.heartbeat_at, now),
        "STARTED": lambda worker: ago(worker.started_at, now),
        "PID": lambda worker: f"{worker.pid}@{worker.host}",
    }
    empty = "No worker yet. Start one with: headrace worker --app module:app"
    session.show_list("workers", found, columns, empty=empty)


@click.command("running", cls=Command)
async def running(session: CliSession) -> None:
    """Show what runs now and what waits.

    With API_URL it asks that server.

      headrace running
      headrace running --json | jq .data.summary
    """
    async with session.backend() as backend:
        found = await running_now(backend, await backend.queues())
    if session.json:
        print_json(found.answer())
        return
    columns: Columns[Job] = {
        "ID": lambda job: job.id,
        "QUEUE": lambda job: job.queue,
        "TASK": lambda job: job.task,
        ">RUNS FOR": lambda job: span(found.elapsed(job)),
        "STAGE": lambda job: job.stage or "-",
        ">PROGRESS": lambda job: f"{job.progress:.0f}%",
        "WORKER": lambda job: job.worker or "-",
    }
    jobs, queued = found.jobs, found.queued
    if jobs:
        print_table(columns, jobs)
        print_line()
    waiting = ", ".join(f"{name}: {count:,}" for name, count in queued.items() if count)
    print_line(f"{plural(len(jobs), 'job')} running, {sum(queued.values()):,} queued")
    if waiting:
        print_line(f"queued  {waiting}")
