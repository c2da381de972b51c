"""What runs have found: kept as JSON, and written into the page of the documentation.

A run replaces what was kept of the same engine and variant, and leaves the others alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.report import machine

from chaos import pages
from chaos.driver import Result
from chaos.figures import by_fault, percentile
from chaos.scene import ROOT

DATA = ROOT / "docs" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
# So many violations of a run are kept with their details.
SHOWN = 100


class Report:
    """Runs by engine and variant, as plain data."""

    def __init__(self, runs: dict[str, dict[str, Any]]) -> None:
        self.runs = runs

    @classmethod
    def of(cls, result: Result) -> Report:
        """One run."""
        return cls({result.options.label: figures_of(result)})

    @classmethod
    def kept(cls) -> Report:
        """What was kept before."""
        return cls(kept_data().get("runs", {}))

    def merged(self, newer: Report) -> Report:
        """These, with newer runs in place of those of the same engine and variant."""
        return Report({**self.runs, **newer.runs})

    def write(self, path: Path) -> None:
        """As JSON."""
        text = json.dumps({"runs": self.runs}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")

    def keep(self) -> None:
        """Write the data, and the tables of the page."""
        keep_part("runs", self.runs, pages.sections(self.runs))


def kept_data() -> dict[str, Any]:
    """What this and other programs have kept, by program."""
    if not DATA.exists():
        return {}
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def keep_part(part: str, runs: dict[str, Any], sections: dict[str, str], by: str = "chaos") -> None:
    """Write one program's part of the data and its tables, and leave those of others alone."""
    text = json.dumps({**kept_data(), part: runs}, indent=1, ensure_ascii=False)
    DATA.write_text(text + "\n", encoding="utf-8")
    if PAGE.exists():
        page = filled(PAGE.read_text(encoding="utf-8"), sections, by)
        PAGE.write_text(page, encoding="utf-8")


def figures_of(result: Result) -> dict[str, Any]:
    """Everything of a run that can be published."""
    options, judgement = result.options, result.judgement
    recoveries = [each.recovery for each in result.faults if each.recovery is not None]
    first = [each.first for each in recoveries if each.first is not None]
    return {
        "engine": options.engine,
        "variant": options.variant,
        "seed": options.seed,
        "seconds": round(result.seconds, 1),
        "lease": options.lease,
        "recovery_limit": options.recovery_limit,
        "faults": [rounded(asdict(row)) for row in by_fault(result)],
        "fault_count": len(result.faults),
        "missed": Counter(placeless(each) for each in result.missed),
        "recovery": rounded({"p50": percentile(first, 50), "p99": percentile(first, 99)}),
        "take_over": rounded(
            {
                "p50": percentile(judgement.take_overs, 50),
                "p99": percentile(judgement.take_overs, 99),
            }
        ),
        "counts": judgement.counts,
        "quiet_seconds": result.quiet_seconds and round(result.quiet_seconds, 2),
        "rules": judgement.by_rule,
        "violations": [
            {**asdict(each), "detail": placeless(each.detail)}
            for each in judgement.violations[:SHOWN]
        ],
        "evidence": {
            job: [
                f"{line.at:.3f} {line.event} token {line.token} {line.name} pid {line.pid}"
                for line in found
            ]
            for job, found in result.evidence.items()
        },
        "allowed": result.allowed,
        "machine": machine(),
        "command": placeless(" ".join(["python -m chaos", *sys.argv[1:]])),
    }


def placeless(text: str) -> str:
    """A text that names no place of this machine."""
    return re.sub(r"(?<![\w.])/[\w./-]+/", "…/", text)


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Hundredths of a second are more than this can tell."""
    return {
        name: round(value, 2) if isinstance(value, float) else value
        for name, value in values.items()
    }


def filled(page: str, sections: dict[str, str], by: str = "chaos") -> str:
    """A page with each section between its marks replaced."""
    for name, text in sections.items():
        begin, end = f"<!-- {by}: {name} -->", f"<!-- /{by}: {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        page = pattern.sub(lambda _, text=f"{begin}\n\n{text}\n\n{end}": text, page)  # type: ignore[misc]
    return page
