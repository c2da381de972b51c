"""`headrace queues`, `lanes`, `workers` and `running`: what there is, and what goes on in it."""

from __future__ import annotations

import click

from headrace.cli.backend import running_now, time_now
from headrace.cli.command import Command, add_switch, argument, group, option
from headrace.cli.errors import notice
from headrace.cli.formatting import ago, bytes_of, plural, span, worker_state
from headrace.cli.output import Columns, print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.job import Job
from headrace.model.names import check_name, check_text
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker

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


async def _pause(session: CliSession, *, name: str, on: bool) -> None:
    check_name("queue", name)
    async with session.backend() as backend:
        known = {queue.name for queue in await backend.queues()}
        await (backend.pause if on else backend.resume)(name)
    if name not in known:
        others = f"; known: {', '.join(sorted(known))}" if known else ""
        notice(f'note: queue "{name}" is not known; it is once a job is put in it{others}')
    state = "paused" if on else "open"
    session.show({"queue": name, "paused": on}, f"Queue {name} is {state}.")


add_switch(
    commands,
    _pause,
    {
        "pause": (
            True,
            "Pause a queue: its jobs are not started. Running jobs go on, new ones are stored.",
        ),
        "resume": (False, "Resume a queue: its jobs are started again."),
    },
    argument=argument("name", "NAME", "The queue."),
    example="headrace queues {} mail",
)


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
