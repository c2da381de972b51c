"""The scenario `dashboard`, at a small size, and how its figures are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from bench.dashboard import browser as browsers
from bench.dashboard import live, paint, series
from bench.dashboard.build import RARE_ERROR, build
from bench.dashboard.large import PAGES, large
from bench.dashboard.live import FIFTY, NOBODY, ONE, TAB, Drain
from bench.dashboard.meter import BARE
from bench.dashboard.program import READY
from bench.dashboard.site import JOBS, PROGRAM, at_most, percentile, serving
from bench.figures import Finding
from bench.scenarios.stage import Stage

import headrace
from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.support.browser import NONE_FOUND, find_browser

SMALL = 1_000


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage("sqlite", scale=SMALL)
    yield made
    made.close()


def by_case(found: list[Finding]) -> dict[str, Finding]:
    assert {each.scenario for each in found} == {"dashboard"}
    return {each.case: each for each in found}


def drains(tab: float, fifty_calls: float = 10.0, late: float | None = 0.5) -> live.Drains:
    return {
        NOBODY: [Drain(1_000.0, 0.0, 0.0, records=1)],
        TAB: [Drain(tab, 10.0, 7.0, late)],
        ONE: [Drain(990.0, 10.0, 7.0)],
        FIFTY: [Drain(900.0, fifty_calls, 350.0)],
    }


# -- judging ---------------------------------------------------------------------------------------


def test_a_figure_is_judged_by_its_bar_and_what_is_not_measured_is_not(stage: Stage) -> None:
    told = [at_most(stage, "case", value, 60.0, "ms").met for value in (60.0, 60.1, None)]
    assert told == [True, False, None]


def test_percentiles_are_of_the_values() -> None:
    values = [float(each) for each in range(100)]
    assert [percentile(each, values) for each in (50, 95, 100)] == [50.0, 95.0, 99.0]
    assert percentile(95, [7.0]) == 7.0


def test_a_tab_may_cost_five_in_a_hundred(stage: Stage) -> None:
    met = {
        rate: by_case(list(live.judged(stage, drains(rate))))["drain while a tab looks"].met
        for rate in (950.0, 940.0)
    }
    assert met == {950.0: True, 940.0: False}


def test_fifty_readers_must_not_ask_more_than_one(stage: Stage) -> None:
    case = "the store is asked for 50 readers of one view"
    met = [
        by_case(list(live.judged(stage, drains(1_000.0, calls))))[case].met for calls in (10, 12)
    ]
    assert met == [True, False]
    too_short = drains(1_000.0, 0.0)
    too_short[ONE][0].calls = 0.0
    assert by_case(list(live.judged(stage, too_short)))[case].met is None


def test_a_last_number_that_comes_late_is_told(stage: Stage) -> None:
    case = "the tab's last number is right after the last start by"
    found = by_case(list(live.judged(stage, drains(1_000.0, late=1.5))))[case]
    assert (found.value, found.met) == (1.5, False)


def test_series_cost_what_a_record_a_minute_costs(stage: Stage) -> None:
    # Half of the rate is lost to 120 times as many records.
    found = series.judged(stage, [500.0], [1_000.0])
    assert found.value == pytest.approx(50 / 120)
    assert found.met
    assert series.judged(stage, [1_000.0], [1_000.0]).value == 0.0


# -- measuring -------------------------------------------------------------------------------------


async def test_a_store_is_built_by_the_verbs(store: str) -> None:
    await build(headrace.App(store), finished=1_000, pending=40)
    async with headrace.App(store) as app:
        jobs = []
        cursor: Any = None
        while True:
            page = await app.engine.list_jobs(JobFilter(), cursor=cursor, limit=500)
            jobs += page.jobs
            cursor = page.cursor
            if cursor is None:
                break
        assert await app.engine.audit() == []
        assert await app.workers() == []
    assert Counter(each.status for each in jobs) == {
        Status.COMPLETED: 990,
        Status.FAILED: 10,
        Status.PENDING: 40,
    }
    assert Counter(each.error_type for each in jobs)[RARE_ERROR] == 1


def test_a_server_counts_what_it_does_for_readers_and_not_its_worker(stage: Stage) -> None:
    with stage.fresh():
        ticks = stage.ticks(200)
        stage.fill("tick", 200)
        with serving(stage, "up") as site:
            assert site.get(BARE)[0] == 200
            site.start_working()
            stage.until(lambda: ticks.count >= 200, site.process)
            counted = site.counts()
            assert (counted["calls"], counted["bytes"], counted["times"]) == (0, 0, {})
            page = site.get(JOBS)[1]
            counted = site.counts()
            assert counted["calls"] > 0
            assert counted["bytes"] == len(page.encode())
            assert list(counted["times"]) == [JOBS]


def test_nobody_asks_the_store_and_the_worker_writes_one_record(stage: Stage) -> None:
    found = live.drain(stage, NOBODY)
    assert found.rate > 0
    assert (found.calls, found.kilobytes, found.records) == (0.0, 0.0, 1)


def test_what_readers_set_off_is_counted_and_a_refusal_is_told(stage: Stage) -> None:
    with stage.fresh(), serving(stage) as site:
        with live.reading(site, 50, "/jobs"):
            stage.until(lambda: site.counts()["calls"] > 0, site.process)
            stage.until(lambda: site.counts()["bytes"] > 0, site.process)
        (stage.arena.folder / READY).unlink()
        with (
            pytest.raises(RuntimeError, match="404"),
            live.reading(site, 1, "/nowhere"),
        ):
            raise AssertionError("it was not refused")


def test_a_tab_ends_with_the_right_number(stage: Stage) -> None:
    if find_browser() is None:
        pytest.skip(NONE_FOUND)
    found = live.drain(stage, TAB)
    assert found.late is not None
    assert found.late < live.PATIENCE_SECONDS


@pytest.mark.parametrize("writes", [True, False])
def test_a_worker_that_writes_no_series_writes_none(stage: Stage, writes: bool) -> None:
    with stage.fresh():
        ticks = stage.ticks(200)
        stage.fill("tick", 200)
        options = ("worker", "--series") if writes else ("worker",)
        with stage.arena.process(PROGRAM, *options, stop=True) as process:
            stage.until(lambda: ticks.count >= 200, process)
        assert (stage.arena.call(PROGRAM, "minutes")["records"] > 0) is writes


def test_every_page_is_timed_in_the_server(stage: Stage) -> None:
    found = list(large(stage))
    assert len(found) == len(PAGES)
    jobs = next(each for each in found if each.case.startswith("Jobs: "))
    assert jobs.value is not None
    assert "1,000 finished, 100 pending" in jobs.case


def test_a_browser_sees_data_in_the_first_paint(stage: Stage) -> None:
    if find_browser() is None:
        pytest.skip(NONE_FOUND)
    # Enough for a full list, and no more.
    stage.scale = 100
    found = by_case(list(paint.seen(stage)))
    painted = found["Jobs, first contentful paint, cold, over a bare page"]
    assert painted.value is not None
    assert "with data in that paint" in painted.note
    assert "Jobs, list of 100, with script and style sheet" in found
    assert found["scrolling 100 jobs, 400 px a frame, most in the page"].value == 100


def test_without_a_browser_the_rest_is_measured(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsers, "find_browser", lambda: None)
    found = by_case(list(paint.seen(stage)))
    assert found["headrace.js, as it is sent"].met
    painted = found["Jobs, first contentful paint, cold, over a bare page"]
    assert (painted.value, painted.met, painted.note) == (None, None, NONE_FOUND)
