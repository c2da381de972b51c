"""Circuit breakers that are open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.model.limits.breaker import BreakerView
from headrace.model.views import Finding, FindingTarget
from headrace.monitor.words import clock_time, close_command

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "breakers"
MOST = 20


def findings(facts: Facts) -> Iterator[Finding]:
    """Return the breakers that are open."""
    for each in facts.breakers[:MOST]:
        yield Finding(
            "warning",
            SUBJECT,
            f"the circuit breaker of lane {each.lane!r} in queue {each.queue!r} is open: "
            f"{each.cause}; {_next(facts, each)}",
            f"{_look(each)}; to start its jobs now: {close_command(each)}",
            kind="breaker.open",
            name=f"{each.queue}/{each.lane}",
            since=each.since,
            action="close",
            target=FindingTarget("lanes", {"queue": each.queue, "lane": each.lane}),
        )


def _next(facts: Facts, breaker: BreakerView) -> str:
    if breaker.phase == "trial":
        return f"job {breaker.trial} is tried"
    if breaker.until <= facts.now:
        return "the next job is tried"
    return f"one job is tried at {clock_time(breaker.until, facts.now)}"


def _look(breaker: BreakerView) -> str:
    if breaker.task is None:
        return f"See which jobs wait: headrace jobs list --queue {breaker.queue}"
    return f"See what fails: headrace errors --task {breaker.task}"
