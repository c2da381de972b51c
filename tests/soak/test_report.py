"""From a run to tables, a plot and the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from soak.driver import Result
from soak.judge import judge
from soak.options import Options
from soak.pages import sections
from soak.report import Report
from soak.screen import figure, summary

from chaos import report as page


def a_result(engine: str = "redis", leak: float = 0.0) -> Result:
    result = Result(Options(engine=engine, seconds=60.0), jobs=20_000, pruned=19_000, seconds=60.0)
    for number in range(100):
        jobs = number * 200
        result.book.note("worker", "memory", "MB", 40 + jobs * leak, jobs=jobs)
        result.book.note("store", "queue", "rows", jobs / 100, jobs=jobs)
    result.left = {"queue": 1.0}
    result.judgements = [judge(each, result.left) for each in result.book.series.values()]
    result.restarts.update({"cron, stopped": 2, "cron, killed": 1})
    result.levels.update({"worker ERROR": 3})
    return result


def test_tables_have_every_series_with_its_verdict() -> None:
    made = sections({**Report.of(a_result()).runs, **Report.of(a_result("sqlite", 1e-3)).runs})
    assert (
        "| worker: memory | 40 → 40 MB (+0): flat | 50.4 → 59.4 MB (+1): **grows** |"
        in (made["processes"])
    )
    assert "| queue | 104 → 194 | +10 | 1 | kept a day after its last job |" in made["rows"]
    assert "| **series that grow** | 0 | 1 |" in made["load"]
    assert "| processes killed | 1 | 1 |" in made["load"]
    assert "![memory of each process on sqlite](reliability/soak-sqlite.svg)" in made["plots"]


def test_a_summary_fits_a_terminal_and_names_what_grows() -> None:
    result = a_result(leak=1e-3)
    result.deaths.append("cron ended with 1: " + "trouble " * 100)
    lines = summary(result).splitlines()
    assert all(len(line) <= 80 for line in lines)
    [told] = [line for line in lines if line.startswith("worker: memory ")]
    assert told.split() == ["worker:", "memory", "50.4", "59.4", "+1", "grows"]


def test_a_run_is_kept_beside_those_of_other_engines_and_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "reliability.md"
    text.write_text(
        "<!-- chaos: x -->theirs<!-- /chaos: x --><!-- soak: load -->old<!-- /soak: load -->",
        encoding="utf-8",
    )
    data = tmp_path / "reliability.json"
    data.write_text(json.dumps({"runs": {}, "others": [1]}), encoding="utf-8")
    monkeypatch.setattr(page, "DATA", data)
    monkeypatch.setattr(page, "PAGE", text)
    Report.of(a_result()).keep()
    Report.of(a_result("sqlite")).keep()
    kept = json.loads(data.read_text(encoding="utf-8"))
    assert kept["others"] == [1]
    assert list(kept["soak"]) == ["redis", "sqlite"]
    assert "points" not in kept["soak"]["redis"]
    page.Report(page.Report.kept().runs).keep()
    assert list(json.loads(data.read_text(encoding="utf-8"))["soak"]) == ["redis", "sqlite"]
    written = text.read_text(encoding="utf-8")
    assert "theirs" in written
    assert "| jobs ended | 20,000 | 20,000 |" in written
    plots = sorted(path.name for path in (tmp_path / "reliability").iterdir())
    assert plots == ["soak-redis.svg", "soak-sqlite.svg"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234.5, "1,234"), (40.0, "40"), (0.126, "0.13"), (100.0, "100"), (-0.001, "0")],
)
def test_figures_are_short(value: float, text: str) -> None:
    assert figure(value) == text
