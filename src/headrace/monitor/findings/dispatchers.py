"""Dispatchers that are silent, not well, or behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.model.views import Finding, FindingTarget
from headrace.monitor.words import clock_time, plural, span

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "dispatchers"
# Messages that wait to become jobs, and seconds by which the last job of a schedule was late.
MUCH_LAG = 1_000
LATE_SECONDS = 60.0
# One that has a living twin was probably replaced; it is told of for so long.
TOLD_FOR = timedelta(minutes=15)


def findings(facts: Facts) -> Iterator[Finding]:
    """Return what is wrong with dispatchers."""
    reporting = {_sort(each) for each in facts.dispatchers if not each["silent"]}
    for each in facts.dispatchers:
        replaced = _sort(each) in reporting
        if each["silent"]:
            if not replaced or facts.now - each["seen_at"] < TOLD_FOR:
                yield _silent(facts, each, replaced=replaced)
        elif not each.get("healthy", True):
            yield _finding(
                each,
                "error",
                "dispatcher.unhealthy",
                "says that it is not well",
                f"Read its log; it runs as process {each.get('pid', '?')} on "
                f"{each.get('host', '?')}.",
            )
        else:
            yield from behind(each)


def _silent(facts: Facts, each: Mapping[str, Any], *, replaced: bool) -> Finding:
    seen = clock_time(each["seen_at"], facts.now)
    command = "cron" if each["type"] == "cron" else "queue"
    return _finding(
        each,
        "warning" if replaced else "error",
        "dispatcher.silent",
        f"has not reported since {seen}" + ("; another one works" if replaced else ""),
        f"Look at process {each.get('pid', '?')} on {each.get('host', '?')}, or start another: "
        f"headrace dispatcher {command} --app …",
        since=each["seen_at"],
    )


def behind(
    each: Mapping[str, Any], *, lag_from: float = MUCH_LAG, late_from: float = LATE_SECONDS
) -> Iterator[Finding]:
    """Return how far behind a dispatcher is, if it is: messages, or seconds of a schedule."""
    lag, late = each.get("lag"), each.get("late_seconds")
    if isinstance(lag, int | float) and lag >= lag_from:
        yield _finding(
            each,
            "warning",
            "dispatcher.behind",
            f"is behind: {plural(int(lag), 'message')} wait to become jobs",
            "Start another with the same configuration: headrace dispatcher queue --app …",
        )
    if isinstance(late, int | float) and late >= late_from:
        yield _finding(
            each,
            "warning",
            "dispatcher.behind",
            f"is behind: the last job of a schedule was {span(late)} late",
            "Look at the load of its machine and of the engine.",
        )


def _sort(each: Mapping[str, Any]) -> tuple[str, str]:
    return str(each["type"]), str(each["adapter"])


def _finding(
    each: Mapping[str, Any], level: Any, kind: str, told: str, remedy: str, **more: Any
) -> Finding:
    # The adapter of a cron dispatcher says nothing.
    which = "cron" if each["type"] == "cron" else str(each["adapter"])
    return Finding(
        level,
        SUBJECT,
        f"{which} dispatcher {each['name']!r} {told}",
        remedy,
        kind=kind,
        name=str(each["name"]),
        target=FindingTarget("intake", {"name": str(each["name"])}),
        **more,
    )
