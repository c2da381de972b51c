"""Results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.bars import Verdict
from bench.contenders import HEADRACE
from bench.figures import LOW, Figures, Finding

ENGINES = ("postgres", "redis", "sqlite")
COLUMNS = {
    "enqueue_one": "enqueue one/s",
    "enqueue_hundred": "100 callers/s",
    "enqueue_many": "many/s",
    "drain_one": "drain, 1 worker/s",
    "drain_two": "2 workers/s",
    "latency_p50": "idle p50 ms",
    "latency_p99": "p99 ms",
    "memory_mb": "RSS MB",
    "connections": "connections",
}
RATIOS = (
    "enqueue_one",
    "enqueue_hundred",
    "enqueue_many",
    "drain_one",
    "drain_two",
    "latency_p50",
    "latency_p99",
)
MET = {True: "yes", False: "**no**", None: "-"}


def contenders(results: Sequence[Figures]) -> str:
    """For each engine what was measured, and Headrace as a multiple of each of the others."""
    parts = []
    for engine in ENGINES:
        rows = [each for each in results if each.engine == engine]
        if not rows:
            continue
        rows.sort(key=lambda each: -(each.drain_one or 0))
        parts.append(f"### {engine}")
        parts.append(
            _table(
                ["", *COLUMNS.values()],
                [[each.name, *(number(getattr(each, key)) for key in COLUMNS)] for each in rows],
            )
        )
        ours = next((each for each in rows if each.name == HEADRACE), None)
        if ours is not None and len(rows) > 1:
            parts.append(
                "Headrace as a multiple of each (latency: each as a multiple of Headrace):"
            )
            parts.append(
                _table(
                    ["", *(COLUMNS[key] for key in RATIOS)],
                    [
                        [each.name, *(_times(ours, each, key) for key in RATIOS)]
                        for each in rows
                        if each is not ours
                    ],
                )
            )
        failed = [
            f"- {each.name}, {step}: `{reason.replace('`', ' ')}`"
            for each in rows
            for step, reason in each.failures.items()
        ]
        if failed:
            parts.append("Failed, in every run:\n\n" + "\n".join(failed))
    return "\n\n".join(parts)


def findings(found: Iterable[Finding], scenario: str) -> str:
    """One scenario over all engines."""
    rows = [
        [
            each.engine,
            each.case,
            f"{number(each.value)} {each.unit}",
            number(each.reference),
            "-" if each.ratio is None else f"{each.ratio:.1%}",
            each.bar or "-",
            MET[each.met] if each.bar else "-",
            each.note,
        ]
        for engine in ENGINES
        for each in found
        if each.scenario == scenario and each.engine == engine
    ]
    heads = ["engine", "case", "measured", "compared with", "share", "bar", "met", "note"]
    return _table(heads, rows) if rows else NOTHING


def bars(verdicts: Iterable[Verdict]) -> str:
    """Bar, measured, met?"""
    rows = [[each.work, each.bar, each.measured, MET[each.met], each.note] for each in verdicts]
    return _table(["work", "bar", "measured", "met", "note"], rows) if rows else NOTHING


def budget(found: Iterable[Finding]) -> str:
    """What a job costs: one line for each measure, one column for each engine."""
    cells = {
        (each.case, each.unit, each.engine): number(each.value)
        for each in found
        if each.scenario == "budget"
    }
    lines = dict.fromkeys((case, unit) for case, unit, _ in cells)
    order = list(dict.fromkeys(case for case, _ in lines))
    rows = [
        [case, unit, *(cells.get((case, unit, engine), "") for engine in ENGINES)]
        for case, unit in sorted(lines, key=lambda line: order.index(line[0]))
    ]
    return _table(["", "", *ENGINES], rows) if rows else NOTHING


NOTHING = "Not measured yet."


def number(value: float | None) -> str:
    """A number as people read it."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return (
        f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.2f}"
        if abs(value) < 1
        else f"{value:.1f}"
    )


def _times(ours: Figures, other: Figures, key: str) -> str:
    mine, theirs = getattr(ours, key), getattr(other, key)
    if not mine or not theirs:
        return "-"
    ratio = theirs / mine if key in LOW else mine / theirs
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
