"""`headrace dispatcher`: what creates jobs, by the clock or from messages, and how far behind."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.api_types.responses import DispatcherView
from headrace.cli.app_loader import reconfigure
from headrace.cli.backend import time_now
from headrace.cli.bundles.options import bundle_option
from headrace.cli.command import flag, group, option
from headrace.cli.formatting import ago, plural, span
from headrace.cli.output import Columns, print_json_line
from headrace.cli.services.logs import log_options, log_to_stderr
from headrace.cli.services.probes import probes_option, serving_probes
from headrace.cli.session import CliSession
from headrace.dispatchers.events.config import DEFAULT, make_adapter, read_queue_config
from headrace.dispatchers.events.dispatcher import QueueDispatcher, run_dispatcher
from headrace.dispatchers.heartbeat import DispatcherHeartbeat
from headrace.engine.stored_text import redacted
from headrace.loops.loop import Loop
from headrace.model.names import check_name
from headrace.tracing.set_up import exporting

if TYPE_CHECKING:
    from headrace.probes import Probe

commands = group("Create jobs by cron or from a broker.")
crons = logging.getLogger("headrace.cron")
events = logging.getLogger("headrace.events")


@commands.command("cron")
@option("--config", "FILE", "Settings and schedules (default config/dispatcher.yaml).")
@probes_option
@bundle_option
@log_options
async def cron(
    session: CliSession,
    *,
    config: str | None,
    probes: str | None,
    log_format: str | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Create the jobs of schedules when they are due, until SIGTERM or Ctrl-C.

    Schedules that the App declares, and those of the file, are stored first. Any number of
    dispatchers may run: each time of a schedule makes one job.

      headrace dispatcher cron --app shop.jobs
      headrace dispatcher cron --app shop.jobs --config config/dispatcher.yaml
    """
    app = reconfigure(session.load_app(), probes=probes, log_format=log_format)
    schedules = app.schedules  # says what to install if the extra is missing
    from headrace.dispatchers.cron.dispatcher import cron_dispatcher, run_cron  # noqa: PLC0415 - an extra

    dispatcher = cron_dispatcher(app, None if config is None else Path(config))
    log_to_stderr(verbose=verbose, quiet=quiet, log_format=app.settings.log_format)
    declared = len(schedules.declared) + sum(map(len, dispatcher.files.values()))
    crons.info(
        "Cron dispatcher %s on %s, %s declared",
        *(dispatcher.id, redacted(app.settings.url), plural(declared, "schedule")),
    )
    with exporting(app.settings.tracing, "headrace-dispatcher"):
        try:
            async with serving_probes(
                app.settings, lambda: probe_of(dispatcher.heartbeat, [dispatcher])
            ):
                code = await run_cron(dispatcher)
        finally:
            await app.close()
    if session.json:
        print_json_line({"event": "stopped", "code": code, "made": dispatcher.firing.made})
    return code


@commands.command("queue")
@bundle_option
@option("--config", "FILE", "Broker and options.", default=str(DEFAULT))
@option("--name", "NAME", "Name of this dispatcher (default generated).")
@probes_option
@flag("--check", "Check the file and the App, then stop.")
@log_options
async def queue(
    session: CliSession,
    *,
    config: str,
    name: str | None,
    probes: str | None,
    check: bool,
    log_format: str | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Create jobs from a broker's messages until SIGTERM or Ctrl-C.

    Each message makes one job, however often it is delivered. A message that makes none is set
    aside; see `headrace dead-letters`. Any number of dispatchers may share the work.

      headrace dispatcher queue --app shop.jobs
      headrace dispatcher queue --app shop.jobs --config orders.yaml --check
    """
    app = reconfigure(session.load_app(), probes=probes, log_format=log_format)
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
        text = f"{config} is fine: {adapter.name}, {plural(len(app.tasks), 'task')}."
        session.show(answer, text)
        return 0
    log_to_stderr(verbose=verbose, quiet=quiet, log_format=app.settings.log_format)
    logging.getLogger("aiokafka").setLevel(logging.WARNING if verbose else logging.CRITICAL)
    events.info("Messages of %s become jobs on %s", adapter.name, redacted(app.settings.url))
    if not app.tasks:
        events.warning("%s has no tasks, so every message will be set aside", app.settings.app)
    loops = [dispatcher.receiver, *dispatcher.writers]
    with exporting(app.settings.tracing, "headrace-dispatcher"):
        try:
            async with serving_probes(app.settings, lambda: probe_of(dispatcher.heartbeat, loops)):
                code = await run_dispatcher(dispatcher)
        finally:
            await app.close()
    if session.json:
        print_json_line(
            {"event": "stopped", "code": code, **msgspec.to_builtins(dispatcher.counts)}
        )
    return code


def probe_of(heartbeat: DispatcherHeartbeat, loops: Sequence[Loop]) -> Probe:
    """Return what answers for a dispatcher."""
    from headrace.probes.dispatcher import DispatcherProbe  # noqa: PLC0415 - most have none

    return DispatcherProbe(heartbeat, loops)


@commands.command("list")
async def list_dispatchers(session: CliSession) -> None:
    """List dispatchers and how far behind they are.

    The lag is messages that are not jobs yet, or seconds for cron.

      headrace dispatcher list
    """
    async with session.backend() as backend:
        found, now = await backend.dispatchers(), time_now(backend)
    columns: Columns[DispatcherView] = {
        "DISPATCHER": lambda each: each.name,
        "ADAPTER": lambda each: each.adapter,
        "STATE": lambda each: "lost" if each.silent else "ok" if each.healthy else "unhealthy",
        ">LAG": _lag,
        ">STORED": lambda each: f"{each.stored:,}",
        ">SET ASIDE": lambda each: f"{each.set_aside:,}",
        "SEEN": lambda each: ago(each.seen_at, now),
    }
    empty = "No dispatcher runs; start one with: headrace dispatcher cron"
    session.show_list("dispatchers", found, columns, empty=empty)


def _lag(dispatcher: DispatcherView) -> str:
    if dispatcher.type == "cron":
        return span(dispatcher.late_seconds or 0.0)
    return "-" if dispatcher.lag is None else f"{dispatcher.lag:,}"
