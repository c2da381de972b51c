"""Tables of the documentation, made from runs that were kept."""

from __future__ import annotations

from typing import Any

from chaos.pages import NOTHING, Runs, provenance, table

from soak.screen import figure

UNITS = {"MB": " MB", "store MB": " MB"}


def sections(runs: Runs) -> dict[str, str]:
    """The parts of the page, by the name of their marks."""
    if not runs:
        return dict.fromkeys(("load", "processes", "rows", "plots", "runs"), NOTHING)
    return {
        "load": load(runs),
        "processes": series(runs, lambda name: not name.startswith("store: ")),
        "rows": "\n\n".join(rows(engine, run) for engine, run in runs.items()),
        "plots": "\n".join(
            f"![memory of each process on {engine}](reliability/soak-{engine}.svg)"
            for engine in runs
        ),
        "runs": provenance(runs),
    }


def load(runs: Runs) -> str:
    """What each run did."""
    kinds: dict[str, Any] = {
        "minutes": lambda run: f"{run['seconds'] / 60:.1f}",
        "jobs ended": lambda run: f"{run['jobs']:,}",
        "jobs pruned": lambda run: f"{run['pruned']:,}",
        "processes stopped in order": lambda run: restarts(run, "stopped"),
        "processes killed": lambda run: restarts(run, "killed"),
        "processes that ended by themselves": lambda run: str(len(run["deaths"])),
        "processor, of one core": lambda run: f"{run['processor']:.0%}",
        "log lines: warnings": lambda run: levels(run, "WARNING"),
        "log lines: errors": lambda run: levels(run, "ERROR"),
        "**series that grow**": lambda run: str(
            sum(each["verdict"] == "grows" for each in run["series"].values())
        ),
    }
    return table(["", *runs], [[name, *map(told, runs.values())] for name, told in kinds.items()])


def restarts(run: dict[str, Any], how: str) -> str:
    """How many processes were ended in a way."""
    return str(sum(count for name, count in run["restarts"].items() if name.endswith(how)))


def levels(run: dict[str, Any], level: str) -> str:
    """Lines of a level."""
    found = sum(count for name, count in run["log_lines"].items() if name.endswith(level))
    return f"{found:,}"


def series(runs: Runs, wanted: Any) -> str:
    """A line for each series, a column for each engine."""
    names = dict.fromkeys(name for run in runs.values() for name in run["series"] if wanted(name))
    lines = [[name, *(cell(run["series"].get(name)) for run in runs.values())] for name in names]
    return table(["process", *runs], lines)


def cell(each: dict[str, Any] | None) -> str:
    """One series of one engine."""
    if each is None:
        return ""
    unit = UNITS.get(each["unit"], "")
    slope = figure(each["per_thousand"], signed=True)
    ends = f"{figure(each['first'])} → {figure(each['last'])}{unit}"
    return f"{ends} ({slope}): {told(each['verdict'])}"


def rows(engine: str, run: dict[str, Any]) -> str:
    """The store of one engine."""
    lines = []
    for name, each in run["series"].items():
        if name.startswith("store: "):
            left = "" if each["left"] is None else f"{each['left']:,.0f}"
            kept = each["kept"] if each["verdict"] == "kept" else ""
            shown = f"{figure(each['first'])} → {figure(each['last'])}"
            slope = figure(each["per_thousand"], signed=True)
            verdict = told(each["verdict"]) + (f" {kept}" if kept else "")
            lines.append([name.removeprefix("store: "), shown, slope, left, verdict])
    return table([engine, "first → last", "per 1,000 jobs", "a day later", "verdict"], lines)


def told(verdict: str) -> str:
    """What has to be seen is bold."""
    return f"**{verdict}**" if verdict == "grows" else verdict
