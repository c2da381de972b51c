"""`headrace worker`: run an App's tasks until a signal."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import click

from headrace.app import App
from headrace.cli.app_loader import reconfigure
from headrace.cli.bundles.options import bundle_option
from headrace.cli.command import Command, flag, option
from headrace.cli.errors import UNAVAILABLE
from headrace.cli.filters import parts
from headrace.cli.formatting import parse_span, plural
from headrace.cli.output import print_json_line
from headrace.cli.services.logs import log_format_option, log_to_stderr
from headrace.cli.services.probes import probes_option, serving_probes
from headrace.cli.session import CliSession
from headrace.engine.stored_text import redacted
from headrace.errors import WorkerUnhealthy
from headrace.model.durable.context import Context
from headrace.model.job import ClaimedJob
from headrace.model.names import check_name
from headrace.orchestrator import CallNext, JobOrchestrator, run_worker
from headrace.orchestrator.worker_program import UNHEALTHY, exit_worker
from headrace.tracing.set_up import exporting
from headrace.version import __version__

if TYPE_CHECKING:
    from headrace.probes import Probe

log = logging.getLogger("headrace.worker")


@click.command("worker", cls=Command)
@option("--queues", "A,B", "Serve only these queues (default WORKER_QUEUES, or all).")
@option("--max-workers", "N", "Run this many jobs at once (default 10).", type=int)
@option("--name", "NAME", "Name of this worker (default generated).")
@option("--lease", "SPAN", "Jobs are taken over if the worker is silent this long (default 30s).")
@option("--grace", "SPAN", "Time for running jobs to finish after a signal (default 30s).")
@option(
    "--connection-retries",
    "N",
    type=int,
    help="Exit after this many failed connections in a row (default never).",
)
@probes_option
@bundle_option
@flag("--exit-when-idle", "Run all jobs that are due, then stop.")
@log_format_option
@flag("--verbose -v", "Log every job.")
@flag("--quiet -q", "Log warnings and errors only.")
@click.option("--stop-with-stdin", is_flag=True, hidden=True)
async def worker(
    session: CliSession,
    *,
    queues: str | None,
    max_workers: int | None,
    name: str | None,
    lease: str | None,
    grace: str | None,
    connection_retries: int | None,
    probes: str | None,
    exit_when_idle: bool,
    log_format: str | None,
    verbose: bool,
    quiet: bool,
    stop_with_stdin: bool,
) -> int:
    """Run your tasks until SIGTERM or Ctrl-C.

    Then running jobs may finish within the grace time, and unstarted ones are released. A second
    signal stops at once. The exit code is 3 if it gave up on the engine.

      headrace worker --app shop.jobs
      headrace worker --app shop.jobs:app --queues mail,scans --max-workers 20
      headrace worker --bundle ingest
    """
    app = reconfigure(
        session.load_app(),
        queues=None if queues is None else tuple(parts([queues])),
        max_workers=max_workers,
        worker_name=None if name is None else check_name("worker", name),
        lease_seconds=None if lease is None else parse_span("--lease", lease),
        grace_seconds=None if grace is None else parse_span("--grace", grace),
        connection_retries=connection_retries,
        probes=probes,
        log_format=log_format,
    )
    log_to_stderr(verbose=verbose, quiet=quiet, log_format=app.settings.log_format)
    orchestrator = JobOrchestrator(app, middleware=(log_job,) if verbose else ())
    log.info("%s", introduction(app))
    if declared := declared_schedules(app):
        log.info(
            "%s declared (%s); they fire while a cron dispatcher runs: "
            "headrace dispatcher cron --app %s",
            plural(len(declared), "schedule"),
            listed(declared),
            app.settings.app,
        )
    if not app.tasks:
        log.warning("%s has no tasks; import the modules that define them", app.settings.app)
    began = time.monotonic()
    with exporting(app.settings.tracing, "headrace-worker"):
        async with serving_probes(app.settings, lambda: probe_of(orchestrator)):
            code = await serve(
                orchestrator,
                *([until_idle(orchestrator)] if exit_when_idle else []),
                *([until_stdin_closes(orchestrator)] if stop_with_stdin else []),
            )
        await app.close()
    if session.json:
        print_json_line({"event": "stopped", "code": code, "seconds": time.monotonic() - began})
    if orchestrator.stuck_threads:
        exit_worker(orchestrator, code)
    return code


def probe_of(orchestrator: JobOrchestrator) -> Probe:
    """Return what answers for a worker."""
    from headrace.probes.worker import WorkerProbe  # noqa: PLC0415 - most workers have none

    return WorkerProbe(orchestrator)


def introduction(app: App) -> str:
    """Return where this worker claims jobs, and which tasks it has."""
    return (
        f"Headrace {__version__} on {redacted(app.settings.url)}, "
        f"{plural(len(app.tasks), 'task')}: {listed(sorted(app.tasks)) or 'none'}"
    )


def declared_schedules(app: App) -> list[str]:
    """Return the names of the schedules in the code of an App. Imports nothing for them."""
    return sorted(app.schedules.declared) if "schedules" in vars(app) else []


def listed(names: list[str]) -> str:
    """Return the first few names."""
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")


async def serve(orchestrator: JobOrchestrator, *beside: Awaitable[None]) -> int:
    """Run a worker until a signal, or until one of the others stops it."""
    helpers = [asyncio.ensure_future(each) for each in beside]
    try:
        code = await run_worker(orchestrator)
    finally:
        for helper in helpers:
            helper.cancel()
        ended = await asyncio.gather(*helpers, return_exceptions=True)
    if code == UNHEALTHY:
        return UNAVAILABLE  # the log says why
    for error in ended:
        if isinstance(error, Exception):
            raise error
    return code


async def until_idle(orchestrator: JobOrchestrator) -> None:
    """Stop the worker when everything that may run now has run."""
    await started(orchestrator)
    try:
        await orchestrator.run_until_idle()
    except WorkerUnhealthy:
        if orchestrator.running:
            raise
    await orchestrator.stop()


async def until_stdin_closes(orchestrator: JobOrchestrator) -> None:
    """Stop the worker when the process that started it has gone, in whatever way."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    await started(orchestrator)
    await orchestrator.stop()


async def started(orchestrator: JobOrchestrator) -> None:
    """Wait until the worker runs; its engine may be away for now."""
    while not orchestrator.running:  # noqa: ASYNC110 - it has no signal for it
        await asyncio.sleep(0.02)


async def log_job(call_next: CallNext, job: ClaimedJob, context: Context) -> Any:
    """A middleware that logs every attempt that returns; the worker logs the others by itself."""
    began = time.monotonic()
    result = await call_next()
    log.info(
        "Job %s (%s, attempt %d) returned after %.3f s",
        job.id,
        job.task,
        context.attempt,
        time.monotonic() - began,
    )
    return result
