"""`headrace queues`: how long they are; pause and resume them."""

from __future__ import annotations

from headrace.cli.command import argument, group
from headrace.cli.errors import notice
from headrace.cli.formatting import span
from headrace.cli.output import is_terminal, print_json, print_line, print_table
from headrace.cli.session import Session
from headrace.model.names import check_name

commands = group("List queues; pause and resume them.")


@commands.command("list")
async def list_queues(session: Session) -> None:
    """List queues with their depth and the age of the oldest pending job.

    \b
    Example:
      headrace queues list
    """
    async with session.backend() as backend:
        queues = await backend.queues()
    if session.json:
        print_json({"queues": queues})
    elif not queues and is_terminal():
        print_line("No queues yet; a queue is there once a job was put in it.")
    else:
        print_table(
            ("QUEUE", "STATE", "READY", "WAITING", "SCHEDULED", "RUNNING", "OLDEST"),
            [
                (
                    queue.name,
                    "paused" if queue.paused else "open",
                    f"{queue.ready:,}",
                    f"{queue.waiting:,}",
                    f"{queue.scheduled:,}",
                    f"{queue.running:,}",
                    "-" if queue.oldest_age is None else span(queue.oldest_age),
                )
                for queue in queues
            ],
            right=("READY", "WAITING", "SCHEDULED", "RUNNING", "OLDEST"),
        )


@commands.command("pause")
@argument("name", metavar="NAME", help="The queue.")
async def pause(session: Session, *, name: str) -> None:
    """Pause a queue: its jobs are not started. Running jobs go on, new ones are stored.

    \b
    Example:
      headrace queues pause mail
    """
    await _set(session, name, paused=True)


@commands.command("resume")
@argument("name", metavar="NAME", help="The queue.")
async def resume(session: Session, *, name: str) -> None:
    """Resume a queue: its jobs are started again.

    \b
    Example:
      headrace queues resume mail
    """
    await _set(session, name, paused=False)


async def _set(session: Session, name: str, *, paused: bool) -> None:
    check_name("queue", name)
    async with session.backend() as backend:
        known = {queue.name for queue in await backend.queues()}
        await (backend.pause if paused else backend.resume)(name)
    if name not in known:
        others = f"; known: {', '.join(sorted(known))}" if known else ""
        notice(f'note: queue "{name}" is not known; it is once a job is put in it{others}')
    if session.json:
        print_json({"queue": name, "paused": paused})
    else:
        print_line(f"Queue {name} is {'paused' if paused else 'open'}.")
