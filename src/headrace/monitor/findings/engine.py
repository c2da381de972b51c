"""What the engine says about itself that is not well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from headrace.model.views import EngineReport, Finding, FindingTarget
from headrace.monitor.words import span

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

MUCH_SKEW = 2.0


def clock_finding(report: EngineReport, lease_seconds: float) -> Finding:
    """Compare the engine's clock with ours."""
    skew = report.clock_skew
    told = f"the engine's clock is {span(abs(skew))} {'ahead of' if skew > 0 else 'behind'} ours"
    remedy = "Synchronise the clocks of both machines, e.g. with chrony."
    if abs(skew) >= lease_seconds / 2:
        return Finding("error", "clock", told, remedy)
    if abs(skew) >= MUCH_SKEW:
        return Finding("warning", "clock", told, remedy)
    return Finding("ok", "clock", "the engine's clock agrees with ours")


def engine_report(report: EngineReport, lease_seconds: float) -> list[Finding]:
    """Return what the report says, also what is well."""
    # An engine may look at its clock itself; only we know how long leases are.
    said = [finding for finding in report.findings if finding.subject != "clock"]
    return [*said, clock_finding(report, lease_seconds)]


def findings(facts: Facts) -> Iterator[Finding]:
    """Return what is not well."""
    for finding in facts.report:
        if finding.level != "ok":
            yield msgspec.structs.replace(
                finding,
                kind=finding.kind or f"engine.{finding.subject}",
                name=finding.name or finding.subject,
                target=FindingTarget("system"),
            )
