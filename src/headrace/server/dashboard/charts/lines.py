"""Values over time: lines or stacked areas with axes, and sparklines without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from headrace.server.dashboard.charts.scale import short, ticks, time_ticks
from headrace.server.dashboard.charts.svg import element, picture

WIDTH, HEIGHT = 640.0, 180.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 8.0, 8.0, 20.0


@dataclass(frozen=True)
class Line:
    """One line. `kind` is its class in the style sheet, such as a status; None is a gap."""

    name: str
    kind: str
    values: Sequence[float | None]


def chart(
    title: str,
    lines: Sequence[Line],
    start: datetime,
    end: datetime,
    *,
    stacked: bool = False,
    unit: str = "",
) -> Markup:
    """Return a chart of values at even times from `start` to `end`. Lines are told apart by their
    dashes as well as by their colours.
    """
    shown = _stacked(lines) if stacked else [list(line.values) for line in lines]
    most = max((value for values in shown for value in values if value is not None), default=0.0)
    marks = ticks(most)
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(index: int, count: int) -> float:
        return LEFT + (width * index / (count - 1) if count > 1 else width)

    def up(value: float) -> float:
        return TOP + height * (1 - value / marks[-1])

    parts = [_rule(up(mark), f"{short(mark)}{unit}") for mark in marks]
    length = (end - start).total_seconds() or 1.0
    for moment in time_ticks(start, end):
        place = LEFT + width * (moment - start).total_seconds() / length
        parts.append(
            element(
                "text",
                moment.strftime("%H:%M" if length <= 2 * 86_400 else "%d %b"),
                class_="tick",
                x=place,
                y=HEIGHT - 4,
                text_anchor="middle" if place < WIDTH - 24 else "end",
                data_time=moment.isoformat(),
                data_form="clock" if length <= 2 * 86_400 else "day",
            )
        )
    floor: list[float | None] = [0.0] * max((len(values) for values in shown), default=0)
    for number, (line, values) in enumerate(zip(lines, shown, strict=True)):
        places = [
            (across(index, len(values)), None if value is None else up(value))
            for index, value in enumerate(values)
        ]
        if stacked:
            base = [
                (across(index, len(values)), up(floor[index] or 0.0))
                for index in range(len(values))
            ]
            outline = [*((x, y if y is not None else up(0)) for x, y in places), *base[::-1]]
            parts.append(
                element("path", element("title", line.name), class_=f"area {line.kind}",
                        d=_path(outline) + "Z")
            )  # fmt: skip
            floor = values
        else:
            parts.append(
                element("path", element("title", line.name), class_=f"line {line.kind} l{number}",
                        d=_path(places), fill="none")
            )  # fmt: skip
    return picture(title, WIDTH, HEIGHT, *parts, kind="over-time")


def sparkline(
    title: str, values: Sequence[float | None], *, kind: str = "", width: float = 120.0
) -> Markup:
    """Return a small line without axes, such as stands in a row of a table."""
    height = 24.0
    most = max((value for value in values if value is not None), default=0.0) or 1.0
    step = (width - 4) / max(1, len(values) - 1)
    places = [
        (2 + index * step, None if value is None else 2 + (height - 4) * (1 - value / most))
        for index, value in enumerate(values)
    ]
    return picture(
        title, width, height,
        element("path", class_=f"line {kind}", d=_path(places), fill="none"),
        kind="sparkline",
        small=True,
    )  # fmt: skip


def _stacked(lines: Sequence[Line]) -> list[list[float | None]]:
    """Return each line on top of those before it; a gap adds nothing."""
    level: list[float | None] = [0.0] * max((len(line.values) for line in lines), default=0)
    shown = []
    for line in lines:
        values = [*line.values, *[None] * (len(level) - len(line.values))]
        level = [
            (below or 0.0) + (value or 0.0) for below, value in zip(level, values, strict=True)
        ]
        shown.append(level)
    return shown


def _rule(y: float, label: str) -> Markup:
    line = element("line", class_="rule", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y)
    return line + element("text", label, class_="tick", x=LEFT - 6, y=y + 3, text_anchor="end")


def _path(places: Sequence[tuple[float, float | None]]) -> str:
    """Return what a pen draws: it is lifted at gaps, and a value alone is a short stroke."""
    drawn = []
    lifted = True
    for index, (x, y) in enumerate(places):
        if y is None:
            lifted = True
            continue
        drawn.append(f"{'M' if lifted else 'L'}{x:.1f} {y:.1f}")
        alone = lifted and (index + 1 == len(places) or places[index + 1][1] is None)
        if alone:
            drawn.append("h1")
        lifted = False
    return "".join(drawn)
