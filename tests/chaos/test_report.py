"""From a run to tables and the page."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from chaos.driver import Injected, Result
from chaos.faults.base import Fault
from chaos.faults.registry import FAULTS, bursts
from chaos.figures import by_fault, percentile
from chaos.judge import Judgement, Violation
from chaos.options import Options
from chaos.pages import NOTHING, sections
from chaos.recovery import Recovery
from chaos.report import Report, figures_of, filled
from chaos.screen import summary

from chaos import report


def a_result(**options: object) -> Result:
    made = {"engine": "redis", "seconds": 60.0, "seed": 3, **options}
    counts = {"acknowledged": 1_000, "begun": 1_200, "refused outcomes": 7}
    return Result(
        Options(**made),  # type: ignore[arg-type]
        faults=[
            Injected("kill worker", 1.0, 0.5, Recovery(1.0, 2.0)),
            Injected("kill worker", 2.0, 0.5, Recovery(3.0, None)),
            Injected("cut replies", 3.0, 0.5, Recovery(0.1, 0.1)),
        ],
        judgement=Judgement([Violation("lost", "job-1", "is gone")], counts),
        quiet_seconds=1.5,
    )


def test_faults_are_told_by_kind() -> None:
    cut, kill = by_fault(a_result())
    assert (cut.name, cut.count, cut.first_p50) == ("cut replies", 1, 0.1)
    assert (kill.count, kill.first_p50, kill.first_p99, kill.last_p99) == (2, 3.0, 3.0, 2.0)


@pytest.mark.parametrize(("share", "value"), [(50, 51), (99, 100), (0, 1)])
def test_percentiles_are_values_that_were_seen(share: float, value: float) -> None:
    assert percentile([float(each) for each in range(100, 0, -1)], share) == value
    assert percentile([], share) is None


def test_a_summary_names_the_job_and_what_repeats_it() -> None:
    said = summary(a_result())
    assert "job-1 is gone" in said
    assert "repeat: make chaos ENGINE=redis MINUTES=1 SEED=3" in said


def test_pages_have_a_column_for_each_engine() -> None:
    runs = Report.of(a_result()).merged(Report.of(a_result(engine="sqlite"))).runs
    made = sections(runs)
    assert "| **acknowledged jobs lost** | 1 | 1 |" in made["promises"]
    assert "| kill worker | 2: 3.00 / 3.00 s | 2: 3.00 / 3.00 s |" in made["faults"]
    assert made["losses"] == NOTHING


def test_what_may_be_lost_has_a_table_of_its_own() -> None:
    result = a_result(variant="everysec")
    result.allowed = {"power cut with everysec": {"times": 3, "lost": 90, "most": 40}}
    made = sections(Report.of(result).runs)
    assert "| power cut with everysec | 3 |  | 90 | 40 |" in made["losses"]
    assert made["promises"] == NOTHING


def test_a_newer_run_replaces_that_of_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "reliability.md"
    page.write_text("<!-- chaos: promises -->old<!-- /chaos: promises -->", encoding="utf-8")
    monkeypatch.setattr(report, "DATA", tmp_path / "reliability.json")
    monkeypatch.setattr(report, "PAGE", page)
    Report.kept().merged(Report.of(a_result())).keep()
    Report.kept().merged(Report.of(a_result(seed=4))).keep()
    Report.kept().merged(Report.of(a_result(engine="sqlite"))).keep()
    assert {name: run["seed"] for name, run in Report.kept().runs.items()} == {
        "redis": 4,
        "sqlite": 3,
    }
    assert "| jobs acknowledged | 1,000 | 1,000 |" in page.read_text(encoding="utf-8")


def test_marks_stay_where_they_are() -> None:
    page = "a\n<!-- chaos: x -->\n<!-- /chaos: x -->\nb"
    once = filled(page, {"x": "text"})
    assert once == "a\n<!-- chaos: x -->\n\ntext\n\n<!-- /chaos: x -->\nb"
    assert filled(once, {"x": "text"}) == once


def test_a_run_is_told_without_places_of_this_machine() -> None:
    result = a_result()
    result.missed = ["full disk: OSError: /tmp/some/where/store could not be made smaller"]
    result.judgement.violations = [Violation("left running", "", "'/usr/local/bin/python -m x'")]
    told = figures_of(result)
    assert list(told["missed"]) == ["full disk: OSError: …/store could not be made smaller"]
    assert told["violations"][0]["detail"] == "'…/python -m x'"


class FakeScene:
    """What faults need to be drawn."""

    def __init__(self, seed: int) -> None:
        self.options = Options(engine="postgres", seconds=1.0, seed=seed)
        self.workers = [object()] * 3
        self.producers = [object()] * 2
        self.folder = Path()


def drawn(seed: int) -> list[tuple[float, str, float]]:
    class Drawn(Fault):
        def draw(self, chance: random.Random) -> None:
            self.seconds = chance.random()

    kinds = [
        type("Drawn", (Drawn,), {"name": name, "group": kind.group})
        for name, kind in FAULTS.items()
    ]
    made = bursts(FakeScene(seed), kinds)  # type: ignore[arg-type]
    return [(after, fault.name, fault.seconds) for _ in range(20) for after, fault in next(made)]


def test_a_seed_draws_the_same_faults_again() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_every_fault_comes_before_chance_alone_decides() -> None:
    assert {name for _, name, _ in drawn(1)} == set(FAULTS)


def test_names_of_faults_can_be_listed_with_commas_between() -> None:
    assert not [name for name in FAULTS if "," in name or "'" in name]
