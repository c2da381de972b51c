"""`headrace workers`: who works, on what, and since when."""

from __future__ import annotations

import click

from headrace.cli.backend import time_now
from headrace.cli.command import Command
from headrace.cli.formatting import ago, bytes_of, worker_state
from headrace.cli.output import is_terminal, print_json, print_line, print_table
from headrace.cli.session import Session


@click.command("workers", cls=Command)
async def workers(session: Session) -> None:
    """Show workers, their queues and their load.

    \b
    Example:
      headrace workers
    """
    async with session.backend() as backend:
        found = await backend.workers()
        now = time_now(backend)
    if session.json:
        print_json({"workers": found})
    elif not found and is_terminal():
        print_line("No worker yet. Start one with: headrace worker --app module:app")
    else:
        print_table(
            ("WORKER", "STATE", "QUEUES", "BUSY", "MEMORY", "CPU", "HEARTBEAT", "STARTED", "PID"),
            [
                (
                    worker.name,
                    worker_state(worker),
                    ",".join(worker.queues) or "all",
                    f"{worker.running}/{worker.slots}",
                    bytes_of(worker.memory_bytes),
                    f"{worker.cpu_percent:.0f}%",
                    ago(worker.heartbeat_at, now),
                    ago(worker.started_at, now),
                    f"{worker.pid}@{worker.host}",
                )
                for worker in found
            ],
            right=("BUSY", "MEMORY", "CPU"),
        )
