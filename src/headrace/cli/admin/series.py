"""`headrace series`: what was done over time, and how deep queues were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import click

from headrace.api_types.series import SeriesPoint, SeriesView, StepName
from headrace.cli.backend import time_now
from headrace.cli.command import Command, option
from headrace.cli.formatting import parse_moment, plural, shown_time, span
from headrace.cli.output import Columns, print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.names import check_name

STEPS = ("minute", "hour", "day")
# With the other columns, a line has 80.
CHART_WIDTH = 40
BARS = "▁▂▃▄▅▆▇█"
MOST_ERRORS = 5
FAILURES = ("failed", "timeout", "retry", "lost")


class Row(NamedTuple):
    """A figure over time. None where there was nothing to measure."""

    name: str
    values: Sequence[float | None]
    seconds: bool = False

    def show(self, value: float | None) -> str:
        """Return a value as people read it."""
        if value is None:
            return "-"
        return span(value) if self.seconds else f"{value:,.0f}"

    @property
    def known(self) -> list[float]:
        """The values that there are."""
        return [value for value in self.values if value is not None]


COLUMNS: Columns[Row] = {
    "SERIES": lambda row: row.name,
    "CHART": lambda row: chart(row.values),
    ">LAST": lambda row: row.show(row.values[-1] if row.values else None),
    ">MOST": lambda row: row.show(max(row.known, default=None)),
}


@click.command("series", cls=Command)
@option("--task", "NAME", "Only this task.")
@option("--queue", "NAME", "Only this queue.")
@option("--since", "TIME", "From: 30m, 2h, 7d ago, or ISO 8601.")
@option("--until", "TIME", "To; same forms.")
@option("--step", "STEP", "minute, hour or day.", default="minute")
async def series(
    session: CliSession,
    *,
    task: str | None,
    queue: str | None,
    since: str | None,
    until: str | None,
    step: str,
) -> None:
    """Show what was done over time, and how deep queues were.

    By minute for a day, by hour for two weeks, by day for 400 days.

      headrace series --since 3h
      headrace series --step hour --task add --json
    """
    if step not in STEPS:
        raise InvalidInput(f"--step must be one of {', '.join(STEPS)}, got {step!r}")
    async with session.backend() as backend:
        now = time_now(backend)
        view = await backend.series(
            task=None if task is None else check_name("task", task),
            queue=None if queue is None else check_name("queue", queue),
            since=None if since is None else parse_moment("--since", since, now),
            until=None if until is None else parse_moment("--until", until, now),
            step=cast("StepName", step),
        )
    if session.json:
        print_json(view)
        return
    print_table(COLUMNS, rows(view.points))
    print_line()
    print_line(
        f"{plural(len(view.points), view.step)}, {shown_time(view.since)} to "
        f"{shown_time(view.until)}"
    )
    print_errors(view)


def rows(points: Sequence[SeriesPoint]) -> list[Row]:
    """Return the figures that are shown."""
    return [
        Row("completed", [point.outcomes.get("completed", 0) for point in points]),
        Row("failed attempts", [_failures(point) for point in points]),
        Row("wait p95", [each.wait.p95 if each.wait else None for each in points], seconds=True),
        Row("run p95", [each.run.p95 if each.run else None for each in points], seconds=True),
        Row("ready jobs", [each.depth.most_ready if each.depth else None for each in points]),
    ]


def _failures(point: SeriesPoint) -> int:
    return sum(point.outcomes.get(name, 0) for name in FAILURES)


def chart(values: Sequence[float | None]) -> str:
    """Return a line of bars, at most `CHART_WIDTH` of them; of several values the greatest."""
    size = -(-len(values) // CHART_WIDTH) or 1
    groups = [values[start : start + size] for start in range(0, len(values), size)]
    tops = [max((each for each in group if each is not None), default=None) for group in groups]
    most = max((top for top in tops if top is not None), default=0) or 1
    last = len(BARS) - 1
    return "".join(" " if top is None else BARS[round(top / most * last)] for top in tops)


def print_errors(view: SeriesView) -> None:
    """Print the most frequent errors of the whole time."""
    for error in view.errors[:MOST_ERRORS]:
        mark = f" ({error.fingerprint})" if error.fingerprint else ""
        print_line(f"{error.count:,} x {error.type} in {error.task}{mark}")
