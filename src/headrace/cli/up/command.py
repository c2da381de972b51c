"""`headrace up`: a worker and the built-in tour, with nothing to set up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.app import App
from headrace.cli.app_loader import reconfigure
from headrace.cli.bundles.options import bundle_option
from headrace.cli.command import Command, flag, option
from headrace.cli.errors import notice
from headrace.cli.formatting import plural
from headrace.cli.output import print_json_line, print_line
from headrace.cli.services.logs import log_format_option, log_to_stderr, without_jobs
from headrace.cli.services.probes import probes_option, serving_probes
from headrace.cli.services.worker import declared_schedules, serve, started
from headrace.cli.session import CliSession
from headrace.cli.up.demos import run_demos
from headrace.cli.up.feed import JobFeed
from headrace.cli.up.processes import WorkerProcesses, run_services
from headrace.engine.stored_text import redacted
from headrace.errors import EngineUnavailable, InvalidInput, WorkerUnhealthy
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.orchestrator import JobOrchestrator
from headrace.orchestrator.worker_program import exit_worker
from headrace.tracing.set_up import exporting
from headrace.version import __version__

if TYPE_CHECKING:
    from headrace.probes import Probe

POLL_TOUR = 0.15
POLL_SECONDS = 0.5


@click.command("up", cls=Command)
@click.option("--tour/--no-tour", default=None, help="Run the tour (default if no App is given).")
@option("--workers", "N", "Number of worker processes.", type=int, default=1)
@click.option("--server/--no-server", default=True, help="Serve the dashboard and the HTTP API.")
@option("--host", "HOST", "Serve on this address (default 127.0.0.1).")
@option("--port", "PORT", "Serve on this port (default 3989, or a free one).", type=int)
@probes_option
@bundle_option
@flag("--exit-when-idle", "Stop when all jobs have run.")
@log_format_option
async def up(
    session: CliSession,
    *,
    tour: bool | None,
    workers: int,
    server: bool,
    host: str | None,
    port: int | None,
    probes: str | None,
    exit_when_idle: bool,
    log_format: str | None,
) -> int:
    """Start a worker, the dashboard, schedules and a short tour.

    Jobs live in headrace.db in this folder, or in HEADRACE_URL. It runs until Ctrl-C.

    With --json each event is one line of JSON.

      headrace up
      headrace up --app shop.jobs --workers 2
      headrace up --port 8080
      headrace up --bundle ingest
    """
    if not 1 <= workers <= 64:
        raise InvalidInput(f"--workers must be between 1 and 64, got {workers}")
    named, bundles = session.settings.app, session.settings.bundles
    if named is not None and tour and not bundles:
        raise InvalidInput("the tour has an App of its own; leave out --app, or --tour")
    app = session.load_app() if named else session.load_app("tour.hello")
    app = reconfigure(app, host=host, port=port, probes=probes, log_format=log_format)
    log_to_stderr(quiet=True, log_format=app.settings.log_format)
    for handler in logging.getLogger().handlers:
        handler.addFilter(without_jobs)
    await app.open()
    # The tour's App knows nobody else's tasks, so it must not take their jobs.
    orchestrator = JobOrchestrator(app, queues=None if named or bundles else ["tour"])
    children = WorkerProcesses(app, count=workers - 1, queues=orchestrator.queues)
    output = UpOutput(session, app, orchestrator, children, exit_when_idle=exit_when_idle)
    served = server and not exit_when_idle

    def probe() -> Probe:
        from headrace.probes.store import StoreProbe  # noqa: PLC0415 - seldom used

        return StoreProbe(app, lambda: orchestrator.trouble or children.trouble)

    with exporting(app.settings.tracing, "headrace"):
        async with (
            serving_probes(app.settings, probe),
            run_services(app, server=served, any_port=port is None) as services,
        ):
            output.banner(workers, services.address)
            for note in services.notes:
                notice(f"note: {note}")
            shown = named is None if tour is None else tour
            try:
                code = await serve(
                    orchestrator, output.run(tour=shown and named is None, demos=shown)
                )
            finally:
                await children.stop()
    await output.feed.end()
    await app.close()
    output.end(code)
    if orchestrator.stuck_threads:
        exit_worker(orchestrator, code)
    return code


def program() -> str:
    """How to call us from here: by name, or by path where that is not on the search path."""
    return "headrace" if shutil.which("headrace") else os.path.relpath(sys.argv[0])


def beginning(job_id: str, jobs: Sequence[Job]) -> str:
    """Return as much of an id as it takes to tell it from those of these jobs."""
    others = [job.id for job in jobs if job.id != job_id]
    return next(
        job_id[:size]
        for size in range(18, len(job_id) + 1)
        if not any(other.startswith(job_id[:size]) for other in others)
    )


class UpOutput:
    """What `headrace up` prints while its worker runs."""

    def __init__(
        self,
        session: CliSession,
        app: App,
        orchestrator: JobOrchestrator,
        children: WorkerProcesses,
        *,
        exit_when_idle: bool,
    ) -> None:
        self._json = session.json
        self._url = session.url
        self._app = app
        self._orchestrator = orchestrator
        self._children = children
        self._exit_when_idle = exit_when_idle
        self.feed = JobFeed(app, json=session.json)
        self._address: str | None = None

    def banner(self, workers: int, address: str | None) -> None:
        """Print where everything is."""
        self._address = address
        settings = self._app.settings
        if self._json:
            about = {"version": __version__, "url": redacted(settings.url), "api": address}
            print_json_line({"event": "up", **about})
            return
        slots = settings.max_workers
        queues = ", ".join(self._orchestrator.queues) or "all"
        print_line(f"Headrace {__version__}")
        print_line(f"  jobs live in  {redacted(settings.url)}")
        each = " each" if workers > 1 else ""
        print_line(f"  at work       {plural(workers, 'worker')} with {slots} slots{each}")
        print_line(f"  queues        {queues}")
        print_line(f"  tasks         {', '.join(sorted(self._app.tasks)) or 'none'}")
        if declared := declared_schedules(self._app):
            print_line(f"  schedules     {', '.join(declared)}")
        if address is not None:
            print_line(f"  dashboard     {address}/")
            print_line(f"  HTTP API      {address}  (to read and to try: {address}/docs)")
            for loaded in self._app.bundles:
                if loaded.bundle.page is not None:
                    page = f"{address}{loaded.bundle.prefix}/"
                    print_line(f"  {loaded.bundle.name:<12}  {page}  ({loaded.bundle.page.title})")
        print_line("  to stop       Ctrl-C")
        print_line()

    async def run(self, *, tour: bool, demos: bool = False) -> None:
        """Print what happens until the worker stops."""
        await started(self._orchestrator)
        self._children.start()
        if demos:
            for name in await run_demos(self._app):
                if not self._json:
                    print_line(f"The demo of bundle {name} has begun.")
        if tour:
            await self._tour()
        else:
            await self.feed.begin()
            if not self._json:
                print_line("Waiting for jobs.")
        if self._exit_when_idle:
            await self._finish()
            return
        while self._orchestrator.running:
            self._children.check()
            await asyncio.sleep(POLL_SECONDS)
            with contextlib.suppress(EngineUnavailable):  # the worker logs it, and waits
                await self.feed.print_changes()
        # Stopping: the other processes at the same time as our own worker.
        await self._children.stop()

    async def _tour(self) -> None:
        from headrace.cli.up.tour import CAST, tour_jobs  # noqa: PLC0415 - only if it runs

        jobs = tour_jobs()
        await self.feed.begin({job.id: label for label, job in jobs})
        if not self._json:
            print_line("The tour, a few small jobs that show what it can do:")
            for name, what in CAST.items():
                print_line(f"  {name:<14}{what}")
            print_line()
        await self._app.enqueue_many([job for _, job in jobs])
        ids = [job.id for _, job in jobs]
        while self._orchestrator.running:
            await self.feed.print_changes()
            found = await self._app.engine.get(ids)
            if all(job.status.final for job in found):
                await self.feed.print_changes()
                self._tour_is_over(found)
                return
            await asyncio.sleep(POLL_TOUR)

    async def _finish(self) -> None:
        try:
            await self._orchestrator.run_until_idle()
        except WorkerUnhealthy:
            if self._orchestrator.running:
                raise
        await self.feed.print_changes()
        await self._orchestrator.stop()

    def _tour_is_over(self, jobs: list[Job]) -> None:
        ended = Counter(job.status for job in jobs)
        if self._json:
            print_json_line({"event": "tour", "jobs": dict(ended)})
            return
        failed = next((job.id for job in jobs if job.status is Status.FAILED), jobs[-1].id)
        where = " --url …" if self._url else ""
        counts = ", ".join(f"{count} {status}" for status, count in ended.items())
        print_line()
        print_line(f"The tour is over: {counts}, as it should be.")
        if self._exit_when_idle:
            return
        print_line("Now try this in another terminal, in the same folder:")
        if self._address is not None:
            print_line(f"  curl '{self._address}/jobs?status=failed'")
        for words, what in (
            ("jobs list", "all jobs, newest first"),
            (f"jobs show {beginning(failed, jobs)}", "the one that failed, and why"),
            ("enqueue tour.hello name=Ada --wait", "enqueue a job and wait for it"),
            ("workflows run tour.greetings --wait", "run a workflow"),
            ("top", "everything at a glance"),
            ("doctor", "is everything well?"),
        ):
            print_line(f"  {f'{program()} {words}{where}':<44}  {what}")
        print_line()
        print_line("Waiting for jobs; what happens to them shows here. Ctrl-C stops the worker.")

    def end(self, code: int) -> None:
        """Print how it ended."""
        if self._json:
            print_json_line({"event": "stopped", "code": code})
        else:
            notice("Stopped." if code == 0 else "Stopped at once; what ran is run again.")
