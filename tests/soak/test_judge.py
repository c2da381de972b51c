"""The judge on series that were made up: each verdict can be had, and each rule can fail."""

from __future__ import annotations

import math
import random

import pytest
from soak.judge import BOUNDS, KEPT, ends_of, growth_over, judge
from soak.series import Book, Point, Series

JOBS = 40_000


def a_series(value, *, of="worker", what="memory", unit="MB", lives=1, points=400) -> Series:  # type: ignore[no-untyped-def]
    """A series whose value is a function of the jobs that have ended, and of those of its life."""
    series = Book()
    for number in range(points):
        jobs = number * JOBS / points
        life = number * lives // points
        begun = math.ceil(life * points / lives) * JOBS / points
        series.note(of, what, unit, value(jobs, jobs - begun), jobs=jobs, life=life)
    [made] = series.series.values()
    return made


_chance = random.Random(7)


def noise(size: float) -> float:
    return _chance.uniform(-size, size)


def test_what_comes_to_rest_is_flat() -> None:
    found = judge(a_series(lambda jobs, _: 40 - 8 * math.exp(-jobs / 3_000) + noise(0.3)))
    assert found.verdict == "flat"
    assert abs(found.per_thousand) < 0.02
    assert found.first == pytest.approx(40, abs=0.5)


def test_a_leak_of_a_hundred_bytes_a_job_is_found() -> None:
    found = judge(a_series(lambda jobs, _: 40 + jobs * 1e-4 + noise(0.3)))
    assert found.verdict == "grows"
    assert found.per_thousand == pytest.approx(0.1, abs=0.01)
    assert found.added > found.bound


def test_a_few_odd_points_move_nothing() -> None:
    chance = random.Random(3)
    found = judge(a_series(lambda *_: 400.0 if chance.random() < 0.1 else 40.0))
    assert (found.verdict, found.per_thousand) == ("flat", 0.0)


def test_saw_teeth_are_flat() -> None:
    found = judge(
        a_series(lambda jobs, _: 300 + jobs % 600, of="store", what="history", unit="rows")
    )
    assert found.verdict == "flat"


def test_what_follows_the_load_down_and_up_again_is_flat() -> None:
    made = a_series(
        lambda jobs, _: 500 + 150 * abs(jobs / JOBS - 0.5), of="store", what="history", unit="rows"
    )
    found = judge(made)
    assert found.added > found.bound
    assert found.verdict == "flat"


def test_a_leak_that_is_seen_late_is_found() -> None:
    # The heap has room at first, so that it takes a while until more memory is needed.
    found = judge(a_series(lambda jobs, _: 40 + max(0.0, jobs - JOBS / 2) * 2e-4))
    assert found.verdict == "grows"


@pytest.mark.parametrize("unit", BOUNDS)
def test_every_unit_has_a_bound_on_both_sides_of_which_is_a_verdict(unit: str) -> None:
    level = 20.0
    bound = BOUNDS[unit].at(level)
    over, under = (
        judge(
            a_series(
                lambda jobs, _, share=share: level + jobs / JOBS * 2 * bound * share, unit=unit
            )
        )
        for share in (1.3, 0.7)
    )
    assert (over.verdict, under.verdict) == ("grows", "flat")


def test_one_leaked_row_in_a_hundred_jobs_is_found() -> None:
    made = a_series(lambda jobs, _: 300 + jobs // 100, of="store", what="entry", unit="rows")
    assert judge(made).verdict == "grows"


def test_a_leak_in_processes_that_are_replaced_is_found_in_their_lives() -> None:
    made = a_series(lambda _, own: 40 + own * 1e-3, lives=5)
    found = judge(made)
    assert (found.verdict, found.lives) == ("grows", 5)
    assert found.across < found.bound


def test_processes_that_warm_up_again_and_again_are_flat() -> None:
    made = a_series(lambda _, own: 40 - 5 * math.exp(-own / 500), lives=8)
    assert judge(made).verdict == "flat"


def test_processes_that_end_before_they_are_warm_are_judged_by_those_before_them() -> None:
    made = a_series(lambda _, own: 40 + own * 1e-3, lives=10)
    assert judge(made).verdict == "flat"
    few = a_series(lambda _, own: 40 + own * 1e-3, lives=3, points=30)
    assert judge(few, least_jobs=JOBS).verdict == "too short"


def test_what_each_process_has_more_than_the_one_before_is_found() -> None:
    made = a_series(lambda jobs, own: 40 + (jobs - own) * 2e-4, lives=10)
    found = judge(made)
    assert found.per_thousand == pytest.approx(0.0)
    assert found.verdict == "grows"
    assert found.across > found.bound


def a_life(jobs: int, end: float, number: int) -> list[Point]:
    return [Point(jobs + each * 10, end, number) for each in range(10)]


def test_a_first_life_that_is_shorter_tells_nothing() -> None:
    ends = [20.0, 30.0, 31.0, 29.0, 38.0, 30.5]
    lives = [a_life(number * 1_000, end, number) for number, end in enumerate(ends)]
    assert [point.value for point in ends_of(lives)] == ends[1:]


def test_processes_that_differ_by_chance_are_flat() -> None:
    ends = [40.0, 46.7, 43.0, 50.2, 44.1, 45.0, 47.3, 51.0]
    points = [Point(number * 1_000.0, end, 0) for number, end in enumerate(ends)]
    assert growth_over(points) == 0.0
    in_order = [Point(number * 1_000.0, end, 0) for number, end in enumerate(sorted(ends))]
    assert growth_over(in_order) > 8


@pytest.mark.parametrize("pattern", KEPT)
def test_what_is_kept_for_long_may_grow_but_has_to_go(pattern: str) -> None:
    what = pattern.replace("*", "")
    most = KEPT[pattern][1]
    made = a_series(lambda jobs, _: jobs / 100, of="store", what=what, unit="rows")
    gone = judge(made, {what: most})
    assert (gone.verdict, gone.left) == ("kept", most)
    assert judge(made, {what: max(most, BOUNDS["rows"].least) + 1}).verdict == "grows"


def test_what_is_left_a_day_later_has_grown_however_it_went() -> None:
    made = a_series(lambda *_: 300.0, of="store", what="history", unit="rows")
    assert judge(made, {"history": 0.0}).verdict == "flat"
    assert judge(made, {"history": 40.0}).verdict == "grows"


def test_nothing_is_said_of_what_was_too_short() -> None:
    few = a_series(lambda jobs, _: jobs, points=5)
    assert judge(few).verdict == "too short"
    long = a_series(lambda jobs, _: jobs)
    assert judge(long, least_jobs=JOBS).verdict == "too short"


def test_rows_of_a_table_that_is_gone_count_nothing() -> None:
    book = Book()
    book.note_all("store", "rows", {"lanes": 3.0}, jobs=1)
    book.note_all("store", "rows", {}, jobs=2)
    assert [point.value for point in book.series["store: lanes"].points] == [3.0, 0.0]
