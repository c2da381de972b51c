"""What is known of tasks: how often they ran in the last hour, how long it took, how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from markupsafe import Markup

from headrace.api_types.monitoring import ErrorGroups
from headrace.api_types.series import Percentiles, SeriesPoint, SeriesView
from headrace.model.job import JobFilter
from headrace.monitor.errors import error_groups, hide
from headrace.server.dashboard.charts import Line, chart, distribution
from headrace.server.dashboard.visit import Visit
from headrace.server.dashboard.words import duration, size
from headrace.server.service import Service
from headrace.task import Task
from headrace.telemetry import BOUNDS, OTHERS, Histogram, TaskCounters

# Outcomes of attempts, the word for each, and the status whose colour it has.
OUTCOMES = (
    ("completed", "completed", "completed"),
    ("retry", "failed, tried again", "pending"),
    ("failed", "failed", "failed"),
    ("timeout", "timeout", "timeout"),
    ("cancelled", "cancelled", "cancelled"),
)
FAILED = ("failed", "timeout", "retry", "lost")
MOST_FAILURES = 500
MOST_GROUPS = 10
ERRORS_SECONDS = 10.0
MOST_KEPT = 64


class Numbers(msgspec.Struct):
    """One task in the last hour, of all queues that somebody may see."""

    name: str
    queues: set[str]
    counters: TaskCounters
    known: bool = False

    @property
    def attempts(self) -> int:
        """How many attempts have ended."""
        return self.counters.attempts

    @property
    def failure_share(self) -> float | None:
        """Which part of them failed; None if there were none."""
        failed = sum(self.counters.others.get(each, 0) for each in FAILED)
        return failed / self.attempts if self.attempts else None

    def percentile(self, which: str, share: float) -> float | None:
        """Return how long attempts waited or ran; None if there were none."""
        histogram: Histogram = getattr(self.counters, which)
        return histogram.percentile(share) if histogram.count else None


async def all_tasks(visit: Visit) -> dict[str, Numbers]:
    """Return the tasks that this caller may know of, by name: those that this server can enqueue,
    and those that workers ran lately.
    """
    caller, app = visit.caller, visit.app
    found: dict[str, Numbers] = {}

    def of(name: str) -> Numbers:
        made = Numbers(name, set(), TaskCounters(name, ""))
        return found.setdefault(name, made)

    for name, task in app.tasks.items():
        if caller.may_touch(task.policy.queue):
            of(name).queues.add(task.policy.queue)
            of(name).known = True
    for counters in await visit.service.series.last_hour():
        if caller.may_touch(counters.queue) and counters.task != OTHERS:
            of(counters.task).queues.add(counters.queue)
            of(counters.task).counters.add(counters)
    snapshot = await visit.service.snapshots.get()
    for telemetry in snapshot.telemetry.values():
        for name, queue in telemetry.tasks:
            if caller.may_touch(queue) and name != OTHERS:
                of(name).queues.add(queue)
    return found


def policy_words(task: Task[..., Any]) -> list[tuple[str, str]]:
    """Return the policy of a task in words, by the name of each part."""
    policy = task.policy
    retry, lane = policy.retry, policy.lane
    tries = "not tried again"
    if retry.retries:
        grows = f", then {retry.factor:g} times that" if retry.factor != 1 else ""
        again = f"{retry.retries} times" if retry.retries > 1 else "once"
        tries = f"tried again {again}, after {duration(retry.base)}{grows}"
    never = [each if isinstance(each, str) else each.__name__ for each in policy.never_retry]
    words = [
        ("Retries", tries + (f"; never after {', '.join(never)}" if never else "")),
        (
            "Timeout",
            "none" if policy.timeout is None else f"stopped after {duration(policy.timeout)}",
        ),
    ]
    if lane is not None:
        words.append(("Lane", f"{lane.template}, {lane.width:,} at a time"))
        if lane.starts is not None:
            words.append(("Rate", f"{lane.starts.words}, up to {lane.starts.burst} at once"))
    if policy.priority:
        words.append(("Priority", str(policy.priority)))
    if policy.isolate == "process":
        limit = f", at most {size(policy.memory_limit)}" if policy.memory_limit else ""
        if policy.tree_memory_limit:
            limit += f", at most {size(policy.tree_memory_limit)} with all that it starts"
        words.append(("Isolation", f"in a process of its own{limit}"))
    if policy.chunk is not None:
        by = f", of one {policy.chunk_by}" if policy.chunk_by else ""
        wait = f"waits {duration(policy.seconds_to_fill)} for them"
        words.append(("Chunks", f"up to {policy.chunk} jobs in one call{by}; {wait}"))
    if policy.on_crash == "fail":
        words.append(("Lost worker", "fails, and is not tried again"))
    if task.encrypted:
        words.append(("Encryption", "what its jobs store is sealed"))
    return words


def short_words(task: Task[..., Any]) -> str:
    """Return the policy of a task for a row of a table."""
    policy = task.policy
    retries = policy.retry.retries
    words = [f"{retries} {'retry' if retries == 1 else 'retries'}" if retries else "no retries"]
    words.append(f"timeout {duration(policy.timeout)}" if policy.timeout else "no timeout")
    if policy.lane is not None:
        words.append(f"lane {policy.lane.template}")
    if policy.isolate == "process":
        words.append("own process")
    if task.encrypted:
        words.append("encrypted")
    if policy.chunk is not None:
        words.append(f"chunks of {policy.chunk}")
    return ", ".join(words)


# -- charts ----------------------------------------------------------------------------------------


def throughput(series: SeriesView) -> Markup:
    """Return attempts by minute and outcome."""
    lines = [
        Line(word, kind, [float(point.outcomes.get(name, 0)) for point in series.points])
        for name, word, kind in OUTCOMES
    ]
    return chart("Attempts by minute", lines, series.since, series.until, stacked=True)


def spans(
    title: str, series: SeriesView, of: Callable[[SeriesPoint], Percentiles | None]
) -> Markup:
    """Return how long attempts waited or ran: half of them, 95 and 99 of 100."""
    found = [of(point) for point in series.points]
    longest = max((each.p99 for each in found if each is not None), default=0.0)
    factor, unit = (1_000.0, " ms") if longest < 1 else (1.0, " s")
    lines = [
        Line(name, "", [None if each is None else getattr(each, name) * factor for each in found])
        for name in ("p50", "p95", "p99")
    ]
    return chart(title, lines, series.since, series.until, unit=unit)


def run_times(histogram: Histogram) -> Markup | None:
    """Return how run times were distributed; None if there were none."""
    used = [index for index, count in enumerate(histogram.counts) if count]
    if not used:
        return None
    first, last = max(used[0] - 1, 0), min(used[-1] + 1, len(histogram.counts) - 1)
    labels = [*(f"≤ {duration(bound)}" for bound in BOUNDS), f"> {duration(BOUNDS[-1])}"]
    pairs = list(zip(labels, histogram.counts, strict=True))[first : last + 1]
    return distribution("Run times in the last hour", pairs, kind="running")


# -- errors ----------------------------------------------------------------------------------------


class TaskErrors:
    """Failures of a task in groups, at most some seconds old: to find them costs more than a page
    may cost at each look.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept: dict[tuple[str, Iterable[str]], tuple[float, ErrorGroups]] = {}

    async def get(self, visit: Visit, task: str) -> ErrorGroups:
        """Return the groups that this caller may see."""
        key = (task, visit.caller.queues)
        made, found = self._kept.get(key, (float("-inf"), None))
        if found is None or time.monotonic() - made > ERRORS_SECONDS:
            engine = visit.app.engine
            wanted = visit.caller.narrowed(JobFilter(tasks=(task,)))
            found = await error_groups(
                engine, wanted, most=MOST_FAILURES, visible=visit.reach.visible
            )
            del found.groups[MOST_GROUPS:]
            found = await hide(engine, found, self._service.answers.error)
            self._kept.pop(key, None)
            self._kept[key] = (time.monotonic(), found)
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return found
