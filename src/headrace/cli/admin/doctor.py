"""`headrace doctor`: is everything well, and what to do if not; `headrace version`."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterator
from typing import Any

import click

from headrace.admin.shown_settings import shown_settings
from headrace.app import EVENTS, App
from headrace.artifacts import ArtifactStore
from headrace.cli.admin.kept_files import kept_findings
from headrace.cli.bundles.findings import bundle_findings
from headrace.cli.command import Command
from headrace.cli.errors import FAILED, OK, UNAVAILABLE
from headrace.cli.formatting import plural
from headrace.cli.output import Columns, print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.errors import EngineError, InvalidInput
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.model.views import EngineReport, Finding
from headrace.model.worker import Worker
from headrace.monitor.findings.engine import engine_report
from headrace.version import __version__

MOST_COUNTED = 1_000


@click.command("doctor", cls=Command)
async def doctor(session: CliSession) -> int:
    """Check that all is well, and say what to do if not.

    Checks the engine, clocks, the artifact store, workers, queues, bundles and settings.

    The exit code is 1 if something is wrong, 3 if the engine cannot be reached.

      headrace doctor
    """
    findings: list[Finding] = list(_app_findings(session))
    report: EngineReport | None = None
    code = OK
    try:
        async with session.store(bundles=True) as app:
            report = await app.engine.report()
            findings += await _engine_findings(app, report)
            if app.settings.bundles:
                findings += bundle_findings(app)
    except EngineError as error:
        findings.append(Finding("error", "engine", str(error), f"Look at {session.shown_url}."))
        code = UNAVAILABLE
    except InvalidInput:
        if not any(finding.level == "error" for finding in findings):
            raise
    if code == OK and any(finding.level == "error" for finding in findings):
        code = FAILED
    settings = shown_settings(session.settings)
    healthy = code == OK
    if session.json:
        found = {"engine": report, "findings": findings, "settings": settings}
        print_json({"healthy": healthy, **found})
    else:
        _print(session, report, findings, settings, healthy=healthy)
    return code


@click.command("version", cls=Command)
async def version(session: CliSession) -> None:
    """Show versions, for a bug report.

    headrace version --json
    """
    versions = {
        "headrace": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    session.show(versions, ", ".join(f"{name} {number}" for name, number in versions.items()))


def _app_findings(session: CliSession) -> Iterator[Finding]:
    if session.settings.app is None:
        return
    try:
        app = session.load_app()
    except InvalidInput as error:
        yield Finding("error", "app", str(error), "Correct --app, HEADRACE_APP or headrace.toml.")
    else:
        yield Finding("ok", "app", f"{session.settings.app}, {plural(len(app.tasks), 'task')}")


async def _engine_findings(app: App, report: EngineReport) -> list[Finding]:
    findings = engine_report(report, app.settings.lease_seconds)
    broken = await app.engine.audit()
    findings += broken or [Finding("ok", "audit", "jobs and lanes agree")]
    workers = await app.engine.workers()
    artifacts = await _artifacts(app.artifact_store)
    kept = await kept_findings(app.engine, app.artifact_store)
    events = [*await _schedules(app), *await _destinations(app)]
    # What the engine says is there whole, also what is well.
    wrong = [each for each in (await app.summary()).findings if not each.kind.startswith("engine.")]
    return [*findings, artifacts, *kept, *_workers(workers, report), *wrong, *events]


async def _schedules(app: App) -> list[Finding]:
    """Return what is to be said of schedules in code; nothing where they are stored."""
    if "schedules" not in vars(app):
        return []
    names = [each.name for each in await app.list_schedules() if not each.stored]
    if not names:
        return []
    told = f"{plural(len(names), 'schedule')} declared in code and never stored: {', '.join(names)}"
    remedy = f"They fire while a dispatcher runs: headrace dispatcher cron --app {app.settings.app}"
    return [Finding("warning", "schedules", told, remedy)]


async def _destinations(app: App) -> list[Finding]:
    """Return what is to be said of destinations; nothing where there are none."""
    found = [
        Finding(
            "warning",
            "destinations",
            f"destination {each.name!r} is disabled: {each.reason}",
            f"Enable it: headrace destinations enable {each.name}",
        )
        for each in await app.destinations()
        if not each.enabled
    ]
    failed = JobFilter(tasks=(EVENTS[1],), statuses=(Status.FAILED, Status.TIMEOUT))
    page = await app.list(failed, limit=MOST_COUNTED)
    if page.jobs:
        number = f"{len(page.jobs):,}{' or more' if page.cursor else ''}"
        found.append(
            Finding(
                "warning",
                "destinations",
                f"{number} deliveries of events have failed for good",
                f"Send them again: headrace jobs retry --task {EVENTS[1]}",
            )
        )
    return found


async def _artifacts(store: ArtifactStore) -> Finding:
    try:
        await store.check()
    except EngineError as error:
        return Finding("error", "artifacts", str(error), "Look at HEADRACE_ARTIFACTS.")
    return Finding("ok", "artifacts", f"files can be kept in {store.where}")


def _workers(workers: list[Worker], report: EngineReport) -> Iterator[Finding]:
    alive = [worker for worker in workers if worker.alive]
    if not alive:
        remedy = "Start one: headrace worker --app …"
        yield Finding("warning", "workers", "no worker is alive", remedy)
        return
    slots = sum(worker.slots for worker in alive)
    running = sum(worker.running for worker in alive)
    busy = f"{plural(len(alive), 'worker')} alive, {running} of {slots} slots busy"
    yield Finding("ok", "workers", busy)
    for worker in alive:
        told = f"worker {worker.name!r}"
        if worker.version != __version__:
            other = f"{told} runs version {worker.version}, this is {__version__}"
            yield Finding("warning", "workers", other, "Restart it with the same version.")
        if (worker.schema_version or 0) < report.schema_version:
            older = f"{told} {_known(worker)}, the store has {report.schema_version}"
            remedy = "Restart it with a newer Headrace: a later migration may refuse it."
            yield Finding("warning", "workers", older, f"It goes on working. {remedy}")


def _known(worker: Worker) -> str:
    if worker.schema_version is None:
        return "is too old to say which schema it knows"
    return f"knows schema {worker.schema_version}"


def _print(
    session: CliSession,
    report: EngineReport | None,
    findings: list[Finding],
    settings: dict[str, Any],
    *,
    healthy: bool,
) -> None:
    if report is not None:
        version = f"{report.engine} {report.server_version}, schema {report.schema_version}"
        print_line(f"Engine {version} at {session.shown_url}")
        print_line()
    columns: Columns[Finding] = {
        "LEVEL": lambda finding: finding.level,
        "ABOUT": lambda finding: finding.subject,
        "FINDING": lambda finding: finding.detail,
    }
    print_table(columns, findings)
    remedies = [finding for finding in findings if finding.level != "ok" and finding.remedy]
    if remedies:
        print_line()
        print_line("What to do")
        for finding in remedies:
            print_line(f"  {finding.subject}: {session.advice(finding.remedy)}")
    print_line()
    print_line("Settings in force")
    given = {name: value for name, value in settings.items() if value not in (None, [], (), {})}
    for name, value in given.items():
        print_line(f"  {name} = {value}")
    print_line()
    warnings = sum(finding.level == "warning" for finding in findings)
    if not healthy:
        print_line("Something is wrong: see above.")
    elif warnings:
        print_line(f"Nothing is broken; {plural(warnings, 'warning')}: see above.")
    else:
        print_line("All is well.")
