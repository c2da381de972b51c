"""`headrace dispatcher queue`: make jobs of a broker's messages; `list`: who does, how far behind.

The noun itself is in `headrace.cli.dispatchers.command`.
"""

from __future__ import annotations

import logging
from pathlib import Path

import click
import msgspec

from headrace.api_types.responses import DispatcherView
from headrace.cli.backend import time_now
from headrace.cli.command import Command
from headrace.cli.formatting import ago, plural, span
from headrace.cli.output import is_terminal, print_json, print_json_line, print_line, print_table
from headrace.cli.services.logs import log_to_stderr
from headrace.cli.session import Session
from headrace.dispatchers.events.config import DEFAULT, read_queue_config
from headrace.dispatchers.events.dispatcher import QueueDispatcher
from headrace.dispatchers.events.load_adapter import make_adapter
from headrace.dispatchers.events.run import run_dispatcher
from headrace.engine.open import redacted
from headrace.model.names import check_name

log = logging.getLogger("headrace.events")


@click.command("queue", cls=Command)
@click.option("--config", metavar="FILE", default=str(DEFAULT), help="Broker and options.")
@click.option("--name", metavar="NAME", help="Name of this dispatcher (default generated).")
@click.option("--check", is_flag=True, help="Check the file and the App, then stop.")
@click.option("--verbose", "-v", is_flag=True, help="Log more details.")
@click.option("--quiet", "-q", is_flag=True, help="Log warnings and errors only.")
async def queue(
    session: Session, *, config: str, name: str | None, check: bool, verbose: bool, quiet: bool
) -> int:
    """Create jobs from a broker's messages until SIGTERM or Ctrl-C.

    Each message makes one job, however often it is delivered. A message that makes none is set
    aside; see `headrace dead-letters`. Any number of dispatchers may share the work.

    \b
    Examples:
      headrace dispatcher queue --app shop.jobs
      headrace dispatcher queue --app shop.jobs --config orders.yaml --check
    """
    app = session.load_app()
    settings = read_queue_config(Path(config))
    adapter = make_adapter(settings)
    dispatcher = QueueDispatcher(
        app,
        adapter,
        batch_size=settings.batch_size,
        hold_seconds=settings.hold_seconds,
        name=check_name("dispatcher", name) if name else settings.name,
    )
    if check:
        answer = {"adapter": adapter.name, "tasks": sorted(app.tasks), "config": config}
        if session.json:
            print_json(answer)
        else:
            print_line(f"{config} is fine: {adapter.name}, {plural(len(app.tasks), 'task')}.")
        return 0
    log_to_stderr(verbose=verbose, quiet=quiet)
    logging.getLogger("aiokafka").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    log.info("Messages of %s become jobs on %s", adapter.name, redacted(app.settings.url))
    if not app.tasks:
        log.warning("%s has no tasks, so every message will be set aside", app.settings.app)
    try:
        code = await run_dispatcher(dispatcher)
    finally:
        await app.close()
    if session.json:
        print_json_line(
            {"event": "stopped", "code": code, **msgspec.to_builtins(dispatcher.counts)}
        )
    return code


@click.command("list", cls=Command)
async def list_dispatchers(session: Session) -> None:
    """List dispatchers and how far behind they are.

    The lag is messages that are not jobs yet, or seconds for cron.

    \b
    Example:
      headrace dispatcher list
    """
    async with session.backend() as backend:
        found, now = await backend.dispatchers(), time_now(backend)
    if session.json:
        print_json({"dispatchers": found})
    elif not found and is_terminal():
        print_line("No dispatcher runs; start one with: headrace dispatcher cron")
    else:
        print_table(
            ("DISPATCHER", "ADAPTER", "STATE", "LAG", "STORED", "SET ASIDE", "SEEN"),
            [
                (
                    each.name,
                    each.adapter,
                    _state(each),
                    _lag(each),
                    f"{each.stored:,}",
                    f"{each.set_aside:,}",
                    ago(each.seen_at, now),
                )
                for each in found
            ],
            right=("LAG", "STORED", "SET ASIDE"),
        )


def _lag(dispatcher: DispatcherView) -> str:
    if dispatcher.type == "cron":
        return span(dispatcher.late_seconds or 0.0)
    return "-" if dispatcher.lag is None else f"{dispatcher.lag:,}"


def _state(dispatcher: DispatcherView) -> str:
    if dispatcher.silent:
        return "lost"
    return "ok" if dispatcher.healthy else "unhealthy"
