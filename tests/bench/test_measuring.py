"""The instruments: starts, logs, the best of several runs, and a peer that fails."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import psycopg
import pytest
from bench.arena import Arena
from bench.contenders import CONTENDERS, Contender
from bench.driver import BARE_STEPS, Driver, shown
from bench.figures import Figures
from bench.meters import metered
from bench.recorder import Recorder, Ticks
from bench.scenarios.registry import SCENARIOS
from bench.scenarios.stage import Stage


def test_starts_are_seen_by_other_processes(tmp_path: Path) -> None:
    seen, written = Recorder(tmp_path / "record", 3), Recorder(tmp_path / "record")
    assert seen.progress() == 0
    for number in (0, 2):
        written.hand_in(number)
        written.start(number)
    assert seen.progress() == 1
    assert not seen.all_started()
    assert len(seen.latencies()) == 2
    assert len(seen.latencies(skip=1)) == 1
    written.start(1)
    assert seen.all_started()


def test_a_second_start_does_not_count(tmp_path: Path) -> None:
    record = Recorder(tmp_path / "record", 1)
    record.start(0)
    first = record.started(0)
    record.start(0)
    assert record.started(0) == first


def test_a_rate_leaves_out_those_that_start_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Recorder(tmp_path / "record", 4)
    # Two slots, one second each: two start at once, and two a second later.
    moments = iter([10**9, 10**9, 2 * 10**9, 2 * 10**9])
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(moments))
    for number in range(4):
        record.start(number)
    assert record.rate(together=2) == 2.0


def test_ticks_tell_the_rate_of_a_stretch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks(tmp_path / "ticks", 500)
    for number in range(1, 401):
        monkeypatch.setattr(time, "monotonic_ns", lambda number=number: number * 10**7)
        ticks.start()
    assert Ticks(tmp_path / "ticks").count == 400
    assert ticks.rate(100, 400) == pytest.approx(100)
    with pytest.raises(ValueError, match="were not all seen"):
        ticks.rate(100, 500)


def test_transactions_of_sqlite_are_read_off_its_log(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("CREATE TABLE thing (number INTEGER)")
    with metered(f"sqlite:///{path}") as cost:
        for number in range(7):
            connection.execute("INSERT INTO thing VALUES (?)", (number,))
        # Enough for the log to begin anew, if it could.
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO thing VALUES (?)", ((n,) for n in range(600_000)))
        connection.execute("COMMIT")
        connection.execute("INSERT INTO thing VALUES (1)")
    connection.close()
    assert cost.transactions == 9
    assert cost.operations > 1_000
    assert cost.written == cost.operations * (4_096 + 24)


def test_the_best_of_two_runs_is_taken_figure_by_figure() -> None:
    first = Figures("a", "redis", drain_one=10, latency_p50=2.0, failures={"latency": "x"})
    second = Figures("a", "redis", drain_one=8, enqueue_one=5, latency_p50=1.0, connections=2)
    best = Figures.over([first, second])
    assert (best.drain_one, best.enqueue_one, best.latency_p50) == (10, 5, 1.0)
    assert best.connections == 2
    assert best.failures == {}


def test_a_contender_that_fails_is_reported_and_the_rest_goes_on() -> None:
    broken = Contender(name="broken", engine="sqlite", program="bench.no_such_program")
    arena = Arena("sqlite")
    try:
        driver = Driver(arena, scale=10)
        drained, waited = driver.measure(broken, "drain_one"), driver.measure(broken, "latency")
    finally:
        arena.close()
    figures = Figures.over([drained, waited])
    assert figures.drain_one is None
    assert set(figures.failures) == {"drain_one", "latency"}
    assert "no_such_program" in figures.failures["drain_one"]
    assert not arena.folder.exists()


def test_the_median_of_several_runs_is_taken_figure_by_figure() -> None:
    runs = [Figures("a", "redis", drain_one=rate, latency_p50=rate) for rate in (9, 2, 4, 3)]
    middle = Figures.over([Figures("a", "redis"), *runs], middle=True)
    assert (middle.drain_one, middle.latency_p50, middle.enqueue_one) == (4, 4, None)


@pytest.mark.parametrize(
    "limit",
    [each for each in CONTENDERS if each.bare],
    ids=lambda each: each.program,
)
def test_a_bare_limit_takes_jobs_in_and_works_them_off(limit: Contender) -> None:
    arena = Arena(limit.engine)
    try:
        driver = Driver(arena, scale=20)
        taken = [driver.measure(limit, step) for step in BARE_STEPS]
    finally:
        arena.close()
    figures = Figures.over(taken)
    assert figures.failures == {}
    assert figures.enqueue_many
    assert figures.drain_one


def test_a_store_comes_to_rest_in_its_own_database() -> None:
    """What is measured must not be vacuumed meanwhile, as it would be without this."""
    arena = Arena("postgres")
    try:
        with arena.fresh(), psycopg.connect(arena.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE pile AS SELECT generate_series(1, 10)")
            arena.come_to_rest()
            [row] = connection.execute(
                "SELECT last_vacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'pile'"
            )
            assert row == (True,)
    finally:
        arena.close()


def test_an_error_names_no_place_of_the_machine() -> None:
    error = RuntimeError('File "/some/where/python3/x.py", line 3\n  ValueError: no')
    assert shown(error) == 'File "…/x.py", line 3 ValueError: no'


def test_every_contender_has_its_program() -> None:
    root = Path(__file__).parents[2]
    for contender in CONTENDERS:
        assert (root / (contender.program.replace(".", "/") + ".py")).exists()
        assert contender.peer == bool(contender.packages)
        # A figure of an unknown version says nothing.
        assert not contender.packages or "==" in contender.packages[0]


def test_a_scenario_measures_headrace_on_a_real_store() -> None:
    stage = Stage("sqlite", scale=200)
    try:
        found = list(SCENARIOS["budget"](stage))
    finally:
        stage.close()
    cost = {(each.case, each.unit): each.value for each in found}
    assert cost["enqueue many", "transactions per 1,000 jobs"] is not None
    assert cost["claim, run, settle", "log bytes per job"] is not None


def test_chunks_are_compared_with_jobs_one_by_one() -> None:
    stage = Stage("sqlite", scale=50)
    try:
        [found] = SCENARIOS["chunks"](stage)
    finally:
        stage.close()
    # How often each row is there has been checked; how fast that was says nothing at this size.
    assert found.value is not None
    assert found.reference is not None
    assert found.bar == "≥ 5 times those one by one"


def test_rates_are_measured_beside_a_key_that_is_throttled() -> None:
    stage = Stage("sqlite", scale=50)
    try:
        [found] = SCENARIOS["rates"](stage)
    finally:
        stage.close()
    assert found.value is not None
    assert found.reference == 400
    assert "beside one with 2,000 jobs" in found.case
