"""What is wrong now, in sentences, with what to do about it: one file for each kind.

`headrace doctor`, `headrace top`, `headrace status` and `GET /summary` say it in the same words.
"""

from __future__ import annotations

from headrace.model.views import Finding
from headrace.monitor.findings import (
    breakers,
    dispatchers,
    engine,
    failures,
    lanes,
    queues,
    schedules,
    workers,
)
from headrace.monitor.findings.facts import Facts

__all__ = ["Facts", "findings"]

KINDS = (engine, queues, workers, lanes, breakers, failures, dispatchers, schedules)


def findings(facts: Facts) -> list[Finding]:
    """Return what is to be said, errors first. Empty means that all is well."""
    found = [finding for kind in KINDS for finding in kind.findings(facts)]
    return sorted(found, key=lambda finding: finding.level != "error")
