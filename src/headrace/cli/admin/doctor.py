"""`headrace doctor`: is everything well, and what to do if not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from headrace.app import EVENTS, App
from headrace.artifacts import ArtifactStore
from headrace.cli.command import Command
from headrace.cli.errors import FAILED, OK, UNAVAILABLE
from headrace.cli.formatting import plural, span
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.config import SECRETS, Settings
from headrace.engine.open import redacted
from headrace.errors import EngineError, InvalidInput
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.model.views import EngineReport, Finding, QueueView
from headrace.model.worker import Worker
from headrace.monitor.why import knows, serves
from headrace.version import __version__

MOST_COUNTED = 1_000


@click.command("doctor", cls=Command)
async def doctor(session: CliSession) -> int:
    """Check that all is well, and say what to do if not.

    Checks the engine, clocks, the artifact store, workers, queues and settings.

    The exit code is 1 if something is wrong, 3 if the engine cannot be reached.

    \b
    Example:
      headrace doctor
    """
    findings: list[Finding] = list(_app_findings(session))
    report: EngineReport | None = None
    code = OK
    try:
        async with session.store() as app:
            report = await app.engine.report()
            findings += await _engine_findings(app, report)
    except EngineError as error:
        findings.append(Finding("error", "engine", str(error), f"Look at {session.shown_url}."))
        code = UNAVAILABLE
    except InvalidInput:
        if not any(finding.level == "error" for finding in findings):
            raise
    if code == OK and any(finding.level == "error" for finding in findings):
        code = FAILED
    settings = shown_settings(session.settings)
    if session.json:
        print_json(
            {"healthy": code == OK, "engine": report, "findings": findings, "settings": settings}
        )
    else:
        _print(session, report, findings, settings, code)
    return code


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
    # An engine may look at its clock itself; only we know how long leases are.
    findings = [finding for finding in report.findings if finding.subject != "clock"]
    findings.append(_clock(report, app.settings))
    broken = await app.engine.audit()
    findings += broken or [Finding("ok", "audit", "jobs and lanes agree")]
    workers = await app.engine.workers()
    queues = await app.engine.queues()
    artifacts = await _artifacts(app.artifacts)
    events = await _destinations(app)
    return [*findings, artifacts, *_workers(workers, report), *_queues(queues, workers), *events]


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


def _clock(report: EngineReport, settings: Settings) -> Finding:
    skew = report.clock_skew
    told = f"the engine's clock is {span(abs(skew))} {'ahead of' if skew > 0 else 'behind'} ours"
    remedy = "Synchronise the clocks of both machines, e.g. with chrony."
    if abs(skew) >= settings.lease_seconds / 2:
        return Finding("error", "clock", told, remedy)
    if abs(skew) >= 2:
        return Finding("warning", "clock", told, remedy)
    return Finding("ok", "clock", "the engine's clock agrees with ours")


def _workers(workers: list[Worker], report: EngineReport) -> Iterator[Finding]:
    alive = [worker for worker in workers if worker.alive]
    if not alive:
        yield Finding(
            "warning", "workers", "no worker is alive", "Start one: headrace worker --app …"
        )
        return
    slots = sum(worker.slots for worker in alive)
    running = sum(worker.running for worker in alive)
    yield Finding(
        "ok", "workers", f"{plural(len(alive), 'worker')} alive, {running} of {slots} slots busy"
    )
    for worker in alive:
        if not worker.healthy:
            yield Finding(
                "error",
                "workers",
                f"worker {worker.name!r} says that it is not well",
                f"Read its log; it runs as process {worker.pid} on {worker.host}.",
            )
        if worker.version != __version__:
            yield Finding(
                "warning",
                "workers",
                f"worker {worker.name!r} runs version {worker.version}, this is {__version__}",
                "Restart it with the same version.",
            )
        if (worker.schema_version or 0) < report.schema_version:
            yield Finding(
                "warning",
                "workers",
                f"worker {worker.name!r} {_known(worker)}, the store has {report.schema_version}",
                "It goes on working. Restart it with a newer Headrace: a later migration may "
                "refuse it.",
            )


def _known(worker: Worker) -> str:
    if worker.schema_version is None:
        return "is too old to say which schema it knows"
    return f"knows schema {worker.schema_version}"


def _queues(queues: list[QueueView], workers: list[Worker]) -> Iterator[Finding]:
    for queue in queues:
        pending = queue.ready + queue.waiting
        if not pending:
            continue
        told = f"queue {queue.name!r} has {plural(pending, 'pending job')}"
        if queue.paused:
            yield Finding(
                "warning",
                "queues",
                f"{told} and is paused",
                f"Resume it: headrace queues resume {queue.name}",
            )
        serving = [worker for worker in workers if serves(worker, queue.name)]
        for task, number in sorted(queue.reserved.items()):
            if serving and not any(knows(worker, task) for worker in serving):
                yield Finding(
                    "error",
                    "queues",
                    f"queue {queue.name!r} has {plural(number, 'pending job')} of task {task!r}, "
                    "which no worker knows",
                    "Start a worker whose --app registers it, or cancel them: "
                    f"headrace jobs cancel --queue {queue.name} --task {task}",
                )
        if not serving:
            yield Finding(
                "error",
                "queues",
                f"{told}, but no worker serves it",
                f"Start one: headrace worker --queues {queue.name} --app …",
            )


def shown_settings(settings: Settings) -> dict[str, Any]:
    """The settings in force, without secrets."""
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    for name in ("url", "artifacts", "api_url"):
        if shown[name] is not None:
            shown[name] = redacted(shown[name])
    return shown | {name: "***" for name in SECRETS if shown[name] is not None}


def _print(
    session: CliSession,
    report: EngineReport | None,
    findings: list[Finding],
    settings: dict[str, Any],
    code: int,
) -> None:
    if report is not None:
        version = f"{report.engine} {report.server_version}, schema {report.schema_version}"
        print_line(f"Engine {version} at {session.shown_url}")
        print_line()
    print_table(
        ("LEVEL", "ABOUT", "FINDING"),
        [(finding.level, finding.subject, finding.detail) for finding in findings],
    )
    remedies = [finding for finding in findings if finding.level != "ok" and finding.remedy]
    if remedies:
        print_line()
        print_line("What to do")
        for finding in remedies:
            print_line(f"  {finding.subject}: {finding.remedy}")
    print_line()
    print_line("Settings in force")
    given = {name: value for name, value in settings.items() if value not in (None, [], ())}
    for name, value in given.items():
        print_line(f"  {name} = {value}")
    print_line()
    print_line("All is well." if code == OK else "Something is wrong: see above.")
