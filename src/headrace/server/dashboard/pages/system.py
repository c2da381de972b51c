"""System: the engine, versions, bundles, and what is not well."""

from __future__ import annotations

import asyncio
import platform
import time
from collections import Counter
from typing import Any

import msgspec

from headrace.admin.shown_settings import shown_settings
from headrace.app import App
from headrace.model.views import EngineReport, Finding
from headrace.monitor.findings.engine import engine_report
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.service import Service
from headrace.version import __version__

# The report costs the engine something: it is asked for once in so many seconds.
FRESH_SECONDS = 10.0


class EngineReports:
    """The engine's report, as it was a few seconds ago at most. Concurrent callers share one."""

    def __init__(self, service: Service) -> None:
        self._app = service.app
        self._reading = asyncio.Lock()
        self._last: EngineReport | None = None
        self._read_at = float("-inf")

    async def get(self) -> EngineReport:
        """Return the report. Raises `EngineUnavailable` while the engine is away."""
        async with self._reading:
            if self._last is None or time.monotonic() - self._read_at > FRESH_SECONDS:
                await self._app.open()
                self._last = await self._app.engine.report()
                self._read_at = time.monotonic()
            return self._last


class BundleState(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle, and why it is of no use, if it is."""

    name: str
    version: str | None = None
    tasks: int = 0
    tables: str | None = None
    page: str | None = None
    failure: str | None = None


@page("/system", title="System", key="y")
async def system(visit: Visit) -> Shown:
    """Show the engine and what it says of itself, versions, bundles and settings."""
    visit.caller.check_unrestricted("the engine and its settings")
    app = visit.app
    report = await visit.service.part(EngineReports).get()
    summary = await visit.service.summaries.get()
    # What the engine says is there whole, also what is well.
    wrong = [each for each in summary.findings if not each.kind.startswith("engine.")]
    return Shown(
        "system/system.html",
        report=report,
        skew=round(report.clock_skew, 1),
        findings=[*wrong, *_ordered(engine_report(report, app.settings.lease_seconds))],
        version=__version__,
        python=platform.python_version(),
        workers=sorted(Counter(each.version for each in summary.workers if each.alive).items()),
        loaded=bundle_states(app),
        settings=_given(shown_settings(app.settings)) if visit.may("admin") else None,
        link_of=lambda finding: _link(visit, finding),
    )


def bundle_states(app: App) -> list[BundleState]:
    """Return the bundles of an App, those that are of no use first."""
    if "bundles" not in vars(app):
        return []
    failed = [BundleState(name=each.name, failure=each.reason) for each in app.bundles.failures]
    ready = [
        BundleState(
            name=each.bundle.name,
            version=each.version,
            tasks=len(each.tasks),
            tables=None if each.bundle.tables is None else str(each.setup.tables_address),
            page=None if each.bundle.page is None else each.bundle.prefix,
        )
        for each in app.bundles
    ]
    return failed + ready


def _ordered(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda each: ("error", "warning", "ok").index(each.level))


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value not in (None, [], ())}


def _link(visit: Visit, finding: Finding) -> str | None:
    """Return where people see more of a finding."""
    target = finding.target
    if target is None or target.page == "system":
        return None
    return visit.url(f"/{target.page}", **target.query)
