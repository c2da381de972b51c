"""From figures to verdicts, tables, plots and pages."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.bars import Verdict, verdicts
from bench.contenders import BARE, CONTENDERS, HEADRACE
from bench.figures import Figures, Finding
from bench.report import Report, filled

from bench import plots, report, tables


def figures(name: str, engine: str, drain: float, **more: float) -> Figures:
    return Figures(
        name,
        engine,
        drain_one=drain,
        **{  # type: ignore[arg-type]
            "enqueue_one": drain,
            "enqueue_hundred": drain,
            "enqueue_many": drain,
            "drain_two": drain,
            "latency_p50": 1e5 / drain,
            "latency_p99": 2e5 / drain,
            "spare_one": 0.0,
            **more,
        },
    )


def everybody(ours: float) -> list[Figures]:
    """Headrace this many times as fast as each peer, and as fast as the bare limit."""
    return [
        figures(each.name, each.engine, 1_000 * (1 if each.peer else ours)) for each in CONTENDERS
    ]


def of(found: list[Verdict], start: str) -> list[Verdict]:
    return [each for each in found if each.work.startswith(start)]


def test_a_lead_of_ten_meets_every_bar_on_peers() -> None:
    found = list(verdicts(everybody(10), []))
    assert [each.work for each in found if each.met is False] == []
    assert len(of(found, "postgres: drain")) == 4
    assert len(of(found, "redis: drain")) == 3
    assert len(of(found, "sqlite: drain")) == 1
    assert len(of(found, "redis: idle latency")) == 2


def test_a_lead_that_is_too_small_is_told() -> None:
    found = list(verdicts(everybody(4), []))
    failed = {(each.work, each.bar) for each in found if each.met is False}
    assert ("postgres: drain 20,000 no-op jobs, one worker", "≥ 9x PgQueuer, default") in failed
    assert (
        "postgres: drain 20,000 no-op jobs, one worker",
        "≥ 3.8x PgQueuer, batch 100",
    ) not in failed
    assert ("sqlite: enqueue single, 100 callers at once", "≥ 5x every peer") in failed


def test_an_asyncio_bar_ignores_other_peers() -> None:
    results = [
        figures(HEADRACE, "redis", 10),
        figures("SAQ", "redis", 5),
        figures("Huey (no acknowledgement)", "redis", 50),
    ]
    [single] = of(list(verdicts(results, [])), "redis: enqueue single, one after the other")
    assert single.met is True
    assert "SAQ" in single.measured


def test_two_workers_need_a_core_to_spare() -> None:
    full = figures(HEADRACE, "redis", 10, spare_one=0.6)
    spare = figures(HEADRACE, "redis", 10, spare_one=1.2)
    faster = figures(HEADRACE, "redis", 10, drain_two=14, spare_one=0.0)
    told = [of(list(verdicts([each], [])), "redis: two")[0].met for each in (full, spare, faster)]
    assert told == [None, False, True]


def test_what_was_not_measured_is_not_judged() -> None:
    assert list(verdicts([], [])) == []
    assert list(verdicts([Figures(HEADRACE, "redis"), Figures(BARE, "redis")], [])) == []


def a_finding(**fields: object) -> Finding:
    return Finding(
        **{  # type: ignore[arg-type]
            "scenario": "growth",
            "engine": "redis",
            "case": "1,000,000 pending",
            "value": 70.0,
            "unit": "jobs/s",
            "reference": 100.0,
            "ratio": 0.7,
            "bar": "≥ 80%",
            "met": False,
            **fields,
        }
    )


def test_findings_with_a_bar_are_verdicts() -> None:
    [verdict] = verdicts([], [a_finding(), a_finding(bar="", met=None)])
    assert verdict.work == "redis: growth, 1,000,000 pending"
    assert verdict.measured == "70.0% (70/s to 100/s)"
    assert "**no**" in tables.bars([verdict])


def test_tables_have_a_line_for_each_and_ratios_to_headrace() -> None:
    text = tables.contenders([figures(HEADRACE, "redis", 3_000), figures("SAQ", "redis", 1_000)])
    assert "### redis" in text
    assert "| SAQ | 3.0x | 3.0x | 3.0x | 3.0x | 3.0x | 3.0x | 3.0x |" in text


def test_a_failed_step_is_in_the_report() -> None:
    slow = Figures("SAQ", "redis", failures={"latency": "no `answer`"})
    assert "- SAQ, latency: `no  answer `" in tables.contenders([slow])


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (2, "2"), (0.0, "0.00"), (1.25, "1.2"), (12_345.6, "12,346")]
)
def test_numbers_are_readable(value: float | None, text: str) -> None:
    assert tables.number(value) == text


def test_plots_are_pictures() -> None:
    rows = [("a < b", 10.0, plots.OURS), ("c", 0.0, plots.THEIRS)]
    for picture in (
        plots.bars("Title & more", rows),
        plots.lines("Title", {"one": [(0, 1), (5, 2)]}, across="s", up="jobs/s"),
        plots.lines("Nothing", {"one": [(0, 0)]}, across="s", up="jobs/s"),
    ):
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_a_section_is_replaced_between_its_marks() -> None:
    page = "before\n<!-- bench: bars -->\nold\n<!-- /bench: bars -->\nafter"
    once = filled(page, {"bars": r"new \1", "other": "x"})
    assert once == "before\n<!-- bench: bars -->\n\nnew \\1\n\n<!-- /bench: bars -->\nafter"
    assert filled(once, {"bars": r"new \1"}) == once


def test_a_newer_run_replaces_only_what_it_measured() -> None:
    old = Report(
        results=[figures(HEADRACE, "redis", 1), figures(HEADRACE, "sqlite", 1)],
        findings=[a_finding(), a_finding(scenario="memory")],
        runs={"redis table": {"on": "then"}, "sqlite table": {"on": "then"}},
    )
    new = Report(
        results=[figures(HEADRACE, "redis", 2)],
        findings=[a_finding(value=90.0)],
        runs={"redis table": {"on": "now"}, "redis growth": {"on": "now"}},
    )
    both = old.merged(new)
    assert {each.engine: each.drain_one for each in both.results} == {"redis": 2, "sqlite": 1}
    assert [(each.scenario, each.value) for each in both.findings] == [
        ("memory", 70.0),
        ("growth", 90.0),
    ]
    assert both.runs["sqlite table"] == {"on": "then"}


def test_what_is_kept_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench: machine --><!-- /bench: machine -->", encoding="utf-8")
    monkeypatch.setattr(report, "DATA", tmp_path / "performance.json")
    monkeypatch.setattr(report, "PLOTS", tmp_path / "performance")
    monkeypatch.setattr(report, "PAGES", (page,))
    made = Report(
        results=[figures(HEADRACE, "redis", 3)],
        findings=[a_finding(scenario="memory", series=[(0.0, 1.0), (5.0, 2.0)])],
    )
    made.note_run("redis", "table")
    made.keep()
    assert Report.kept() == made
    assert sorted(path.name for path in (tmp_path / "performance").iterdir()) == [
        "drain-redis.svg",
        "memory.svg",
    ]
    assert "redis table" in page.read_text(encoding="utf-8")
