"""`headrace workers`: workers, their queues and their load."""

from __future__ import annotations

import click

from headrace.cli.backend import time_now
from headrace.cli.command import Command
from headrace.cli.formatting import ago, bytes_of, worker_state
from headrace.cli.output import Columns
from headrace.cli.session import CliSession
from headrace.model.worker import Worker

WORKERS: Columns[Worker] = {
    "WORKER": lambda worker: worker.name,
    "STATE": worker_state,
    "QUEUES": lambda worker: ",".join(worker.queues) or "all",
    ">BUSY": lambda worker: f"{worker.running}/{worker.slots}",
    ">MEMORY": lambda worker: bytes_of(worker.memory_bytes),
    ">CPU": lambda worker: f"{worker.cpu_percent:.0f}%",
}


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
