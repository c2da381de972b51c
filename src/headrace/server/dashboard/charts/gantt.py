"""What ran when: one bar for each thing, on one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from headrace.server.dashboard.charts.scale import time_ticks
from headrace.server.dashboard.charts.svg import element, picture

WIDTH, LABEL, ROW, HEAD = 860.0, 250.0, 20.0, 18.0
LONGEST_LABEL = 40


@dataclass(frozen=True)
class GanttRow:
    """A bar from `start` to `end`; before it, from `due`, a thin one for the time it waited."""

    label: str
    kind: str
    start: datetime | None
    end: datetime
    text: str
    due: datetime | None = None
    link: str | None = None


def gantt(title: str, rows: Sequence[GanttRow]) -> Markup:
    """Return the rows below each other. What has not begun has only the time it waits."""
    begins = [moment for row in rows for moment in (row.due, row.start) if moment is not None]
    ends = [row.end for row in rows]
    if not begins:
        begins = ends or [datetime.fromtimestamp(0).astimezone()]
    first, last = min(begins), max([*ends, *begins])
    last = max(last, first + timedelta(milliseconds=1))
    width = WIDTH - LABEL - 8

    def across(moment: datetime) -> float:
        return LABEL + width * ((moment - first) / (last - first))

    height = HEAD + ROW * len(rows) + 4
    parts = [_tick(across(moment), moment, last - first, height) for moment in _ticks(first, last)]
    for number, row in enumerate(rows):
        y = HEAD + ROW * number
        cut = row.label if len(row.label) <= LONGEST_LABEL else row.label[: LONGEST_LABEL - 1] + "…"
        bars = [element("title", row.text), element("text", cut, class_="label", x=4, y=y + 14)]
        if row.due is not None:
            until = across(row.start or row.end)
            bars.append(
                element("rect", class_="waited", x=across(row.due), y=y + 8,
                        width=max(until - across(row.due), 0.5), height=4)
            )  # fmt: skip
        if row.start is not None:
            bars.append(
                element("rect", class_=f"bar {row.kind}", x=across(row.start), y=y + 4,
                        width=max(across(row.end) - across(row.start), 2.0), height=12, rx=2)
            )  # fmt: skip
        group = element("g", *bars)
        parts.append(group if row.link is None else element("a", group, href=row.link))
    linked = any(row.link for row in rows)
    return picture(title, WIDTH, height, *parts, kind="gantt", linked=linked)


def _ticks(first: datetime, last: datetime) -> list[datetime]:
    if last - first >= timedelta(minutes=2):
        return time_ticks(first, last)
    return [first + (last - first) * part / 4 for part in range(5)]


def _tick(x: float, moment: datetime, length: timedelta, height: float) -> Markup:
    form = "clock" if timedelta(minutes=2) <= length <= timedelta(days=2) else "second"
    if length > timedelta(days=2):
        form = "day"
    shown = {"clock": "%H:%M", "second": "%H:%M:%S", "day": "%d %b"}[form]
    rule = element("line", class_="rule", x1=x, x2=x, y1=HEAD - 2, y2=height)
    anchor = "middle" if x < WIDTH - 40 else "end"
    return rule + element(
        "text", moment.strftime(shown), class_="tick", x=x, y=12, text_anchor=anchor,
        data_time=moment.isoformat(), data_form=form,
    )  # fmt: skip
