"""Which conditions hold, by the kind of the rule. Words and thresholds of findings are theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from headrace.alerts.state import AlertCondition
from headrace.errors import InvalidSetting
from headrace.model.alerts.rule import AlertRule, RuleKind, fits
from headrace.model.views import Finding
from headrace.monitor.findings import breakers, dispatchers, lanes, schedules, workers
from headrace.monitor.findings.facts import Facts
from headrace.monitor.findings.read import BREAKERS, LANES, LETTERS, REPORT, SCHEDULES, WORKERS
from headrace.monitor.words import plural, span
from headrace.publishing.tasks import ALERTS
from headrace.telemetry import TaskCounters

# The parts of facts that kinds need besides the snapshot.
PARTS: Mapping[RuleKind, str] = {
    "worker_lost": WORKERS,
    "lane_stuck": LANES,
    "schedule_missed": SCHEDULES,
    "dead_letters": LETTERS,
    "engine_space": REPORT,
    "breaker_open": BREAKERS,
}
FROM_SERIES: tuple[RuleKind, ...] = ("failure_rate", "wait_p95")
UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a round of evaluation has read. `windows` has what was done in the last seconds, by
    their number.
    """

    facts: Facts
    windows: Mapping[float, list[TaskCounters]] = {}


def conditions(rule: AlertRule, seen: Seen) -> list[AlertCondition]:
    """Return the subjects for which a rule's condition holds, the worst first where that is known.
    Raises `InvalidSetting` if it can never be known here.
    """
    return list(_KINDS[rule.kind](rule, seen))


def _queue_length(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    most = rule.above or 0.0
    for queue in sorted(seen.facts.queues, key=lambda each: -(each.ready + each.waiting)):
        pending = queue.ready + queue.waiting
        if pending > most and _wanted(rule, queue.name):
            told = f"queue {queue.name!r} has {plural(pending, 'pending job')}"
            yield AlertCondition(
                subject=queue.name,
                detail=f"{told}, more than {most:,.0f}",
                remedy=f"See why: headrace jobs list --queue {queue.name} --status pending",
            )


def _queue_age(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    most = rule.above or 0.0
    for queue in sorted(seen.facts.queues, key=lambda each: -(each.oldest_age or 0.0)):
        age = queue.oldest_age or 0.0
        if age > most and _wanted(rule, queue.name):
            yield AlertCondition(
                subject=queue.name,
                detail=f"the oldest pending job of queue {queue.name!r} has waited for "
                f"{span(age)}, longer than {span(most)}",
                remedy=f"See why: headrace jobs list --queue {queue.name} --status pending",
            )


def _failure_rate(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    for name, counters in _grouped(rule, seen).items():
        outcomes = counters.outcomes()
        bad = outcomes.get("failed", 0) + outcomes.get("timeout", 0)
        ended = bad + outcomes.get("completed", 0)
        if ended >= rule.least and bad > (rule.above or 0.0) * ended:
            yield AlertCondition(
                subject=name,
                detail=f"{bad:,} of {plural(ended, 'job')} of {rule.by} {name!r} failed in "
                f"{span(rule.window)}: {bad / ended:.0%}, more than {rule.above:.0%}",
                remedy=f"See why: headrace errors --{rule.by} {name}",
            )


def _wait_p95(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    most = rule.above or 0.0
    for name, counters in _grouped(rule, seen).items():
        if counters.wait.count >= rule.least:
            waited = counters.wait.percentile(0.95)
            if waited > most:
                yield AlertCondition(
                    subject=name,
                    detail=f"5 in 100 jobs of {rule.by} {name!r} waited for {span(waited)} or more "
                    f"in {span(rule.window)}, longer than {span(most)}",
                    remedy="Start more workers for it: headrace worker --app …",
                )


def _grouped(rule: AlertRule, seen: Seen) -> dict[str, TaskCounters]:
    """Return what was done in the window of a rule, by queue or by task."""
    found: dict[str, TaskCounters] = {}
    for each in seen.windows.get(rule.window, ()):
        if _wanted(rule, each.queue) and fits(rule.tasks, each.task):
            name = each.queue if rule.by == "queue" else each.task
            found.setdefault(name, TaskCounters(name, name)).add(each)
    return found


def _worker_lost(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    found = (each for each in workers.findings(seen.facts) if each.kind == "worker.lost")
    return _of(found, rule.names)


def _lane_stuck(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    found = lanes.findings(seen.facts)
    return _of(each for each in found if _wanted(rule, each.name.partition("/")[0]))


def _breaker_open(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    found = breakers.findings(seen.facts)
    return _of(each for each in found if _wanted(rule, each.name.partition("/")[0]))


def _schedule_missed(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    return _of(schedules.findings(seen.facts), rule.names)


def _dispatcher_silent(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    # Where another one of its sort reports, its work goes on: that is a warning among findings.
    found = dispatchers.findings(seen.facts)
    silent = (each for each in found if (each.kind, each.level) == ("dispatcher.silent", "error"))
    return _of(silent, rule.names)


def _dispatcher_behind(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    most = dispatchers.MUCH_LAG if rule.above is None else rule.above + 1
    for each in seen.facts.dispatchers:
        if not each["silent"]:
            yield from _of(list(dispatchers.behind(each, lag_from=most))[:1], rule.names)


def _dead_letters(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    letters, most = seen.facts.letters, rule.above or 0.0
    if letters.count > most:
        number = plural(letters.count, "dead letter")
        more = "" if letters.complete else " or more"
        beyond = f", more than {most:,.0f}" if most else ""
        yield AlertCondition(
            subject="dead letters",
            detail=f"there are {number}{more}{beyond}: messages that made no job",
            remedy="See why: headrace dead-letters list",
        )


def _engine_space(rule: AlertRule, seen: Seen) -> Iterator[AlertCondition]:
    space = seen.facts.space
    if space is None:
        raise InvalidSetting(f'rule "{rule.name}": this engine does not tell how much it uses')
    if rule.free_below is not None:
        if space.free_bytes is None:
            raise InvalidSetting(
                f'rule "{rule.name}": this engine does not tell how much {space.where} is free; '
                "use above, the bytes in use"
            )
        if space.free_bytes < rule.free_below:
            yield _space(
                f"{size(space.free_bytes)} of {space.where} are free for the engine, less "
                f"than {size(rule.free_below)}"
            )
    elif rule.above is not None and space.used_bytes > rule.above:
        yield _space(
            f"the engine uses {size(space.used_bytes)} of {space.where}, more than "
            f"{size(rule.above)}"
        )


def _wanted(rule: AlertRule, queue: str) -> bool:
    """Return whether a rule is about a queue. That of alerts has to be named: if a receiver is
    down, alerts about that would go the same way.
    """
    return fits(rule.queues, queue) and (queue != ALERTS or queue in rule.queues)


def _space(detail: str) -> AlertCondition:
    remedy = "Give it more room, or prune finished jobs: headrace prune"
    return AlertCondition(subject="engine", detail=detail, remedy=remedy)


def _of(findings: Iterable[Finding], patterns: tuple[str, ...] = ()) -> Iterator[AlertCondition]:
    for each in findings:
        if fits(patterns, each.name):
            yield AlertCondition(subject=each.name, detail=each.detail, remedy=each.remedy)


def size(count: float) -> str:
    """A number of bytes as people read it: "1.5 GB"."""
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return plural(int(count), "byte")


_KINDS: dict[str, Callable[[AlertRule, Seen], Iterator[Any]]] = {
    "queue_length": _queue_length,
    "queue_age": _queue_age,
    "failure_rate": _failure_rate,
    "wait_p95": _wait_p95,
    "worker_lost": _worker_lost,
    "lane_stuck": _lane_stuck,
    "breaker_open": _breaker_open,
    "schedule_missed": _schedule_missed,
    "dispatcher_silent": _dispatcher_silent,
    "dispatcher_behind": _dispatcher_behind,
    "dead_letters": _dead_letters,
    "engine_space": _engine_space,
}
