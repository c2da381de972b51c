"""What was done and what failed over time, as charts."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from markupsafe import Markup

from headrace.api_types.monitoring import ErrorGroup, ErrorGroups
from headrace.api_types.series import SeriesView
from headrace.server.dashboard.charts.lines import Line, chart, sparkline

# Outcomes of attempts, with the status whose colour and shape they have, the lowest first.
OUTCOMES = {
    "completed": ("completed", "completed"),
    "retry": ("scheduled", "failed, to be retried"),
    "timeout": ("timeout", "timed out"),
    "failed": ("failed", "failed for good"),
    "cancelled": ("cancelled", "cancelled"),
}
FEWEST_QUIET, MOST_QUIET = 9, 60
PERCENTILES = (("p50", "running"), ("p95", "failed"))


def failures_over_time(
    group: ErrorGroup, found: ErrorGroups, start: datetime | None, end: datetime
) -> tuple[list[float], datetime]:
    """Return the failures of a group by step, up to now and from `start` on if that is given, and
    when they begin. Of a quiet time before or after only some is shown: a spike has to be seen.
    """
    step = timedelta(seconds=found.minute_seconds)
    first = found.first_minute or end
    quiet = FEWEST_QUIET if start is None else (first - start) // step
    before = min(max(quiet, 1), MOST_QUIET)
    after = min(max((end - first) // step + 1 - len(group.minutes), 1), MOST_QUIET)
    values = [*[0.0] * before, *map(float, group.minutes), *[0.0] * after]
    return values, first - before * step


def trend(group: ErrorGroup, found: ErrorGroups, start: datetime | None, end: datetime) -> Markup:
    """Return the failures of a group over time as a small line."""
    values, _ = failures_over_time(group, found, start, end)
    return sparkline(f"{group.count:,} failures of {group.task}", values, kind="failed")


def failure_chart(
    group: ErrorGroup, found: ErrorGroups, start: datetime | None, end: datetime
) -> Markup:
    """Return the failures of a group over time, with axes."""
    values, begin = failures_over_time(group, found, start, end)
    last = begin + timedelta(seconds=found.minute_seconds) * (len(values) - 1)
    step = "minute" if found.minute_seconds == 60 else f"{found.minute_seconds // 60} minutes"
    line = Line("failures", "failed", values)
    return chart(f"Failures by {step}", [line], begin, last, stacked=True)


def totals(series: SeriesView) -> dict[str, int]:
    """Return attempts by outcome over the whole time, of those that are charted."""
    found: Counter[str] = Counter()
    for point in series.points:
        found.update(point.outcomes)
    return {name: found[name] for name in OUTCOMES if found[name]}


def outcome_chart(title: str, series: SeriesView) -> Markup:
    """Return attempts by minute, stacked by outcome."""
    lines = [
        Line(OUTCOMES[name][1], OUTCOMES[name][0], _values(series, name)) for name in totals(series)
    ]
    return chart(title, lines, series.since, series.until, stacked=True)


def _values(series: SeriesView, name: str) -> list[float | None]:
    return [float(point.outcomes.get(name, 0)) for point in series.points]


def wait_chart(title: str, series: SeriesView) -> Markup:
    """Return how long jobs waited, by minute."""
    lines = [
        Line(
            name, kind, [getattr(each.wait, name) if each.wait else None for each in series.points]
        )
        for name, kind in PERCENTILES
    ]
    return chart(title, lines, series.since, series.until, unit=" s")
