"""What runs have found: kept as JSON, and written into the page of the documentation."""

from __future__ import annotations

import fcntl
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.report import machine

from bench import plots
from chaos import report as page
from soak import pages
from soak.driver import Result
from soak.judge import thinned
from soak.series import Series

PART = "soak"
PLOTTED = ("worker", "replaced worker", "server", "cron", "events")
SHOWN_DEATHS = 10


class Report:
    """Runs by engine, as plain data, and their plots."""

    def __init__(self, runs: dict[str, dict[str, Any]], drawn: dict[str, str]) -> None:
        self.runs = runs
        self.drawn = drawn

    @classmethod
    def of(cls, result: Result) -> Report:
        """One run."""
        engine = result.options.engine
        return cls({engine: figures_of(result)}, {f"soak-{engine}.svg": drawing(result)})

    def write(self, path: Path) -> None:
        """As JSON."""
        text = json.dumps({PART: self.runs}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")

    def without_points(self) -> dict[str, dict[str, Any]]:
        """What is kept: the plots show the points."""
        return {
            engine: {name: value for name, value in run.items() if name != "points"}
            for engine, run in self.runs.items()
        }

    def keep(self) -> None:
        """Write the data, the tables of the page and the plots; other engines stay as they are."""
        folder = page.PAGE.with_suffix("")
        folder.mkdir(exist_ok=True)
        # Runs of several engines may end in the same moment.
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            runs = {**page.kept_data().get(PART, {}), **self.without_points()}
            page.keep_part(PART, runs, pages.sections(runs), by=PART)
            for name, text in self.drawn.items():
                (folder / name).write_text(text, encoding="utf-8")
        (folder / ".lock").unlink(missing_ok=True)


def figures_of(result: Result) -> dict[str, Any]:
    """Everything of a run that can be published."""
    return {
        "engine": result.options.engine,
        "seed": result.options.seed,
        "seconds": round(result.seconds, 1),
        "rate": result.options.rate,
        "history_seconds": result.options.history,
        "jobs": result.jobs,
        "pruned": result.pruned,
        "processor": round(result.processor, 3),
        "restarts": dict(result.restarts),
        "deaths": [page.placeless(each) for each in result.deaths[:SHOWN_DEATHS]],
        "log_lines": dict(sorted(result.levels.items())),
        "messages": dict(result.messages.most_common(40)),
        "series": {each.name: rounded(asdict(each)) for each in result.judgements},
        "points": {
            name: [[point.jobs, round(point.value, 2), point.life] for point in few(series)]
            for name, series in result.book.series.items()
        },
        "left": result.left,
        "machine": machine(),
        "command": page.placeless(" ".join(["python -m soak", *sys.argv[1:]])),
    }


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Three digits behind the point are enough."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in values.items()
        if name != "name"
    }


def few(series: Series) -> list[Any]:
    """Enough points to draw a line."""
    points = series.points
    return [*thinned(points)[:-1], points[-1]] if points else []


def drawing(result: Result) -> str:
    """The memory of each kind of process over the jobs that have ended."""
    found = {
        kind: [(point.jobs, point.value) for point in few(series)]
        for kind in PLOTTED
        if (series := result.book.series.get(f"{kind}: memory")) is not None
    }
    return plots.lines(
        f"Memory by process, {result.options.engine}",
        found or {"nothing": [(0.0, 0.0)]},
        across="jobs that have ended",
        up="MB",
    )
