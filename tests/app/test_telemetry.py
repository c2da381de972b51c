"""Counters and histograms."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.telemetry import GRAIN, Histogram, Telemetry


def test_histograms_count_and_add_up() -> None:
    histogram = Histogram()
    for value in (0.0005, 0.001, 0.3, 10_000.0):
        histogram.observe(value)
    cumulative = dict(histogram.cumulative())
    assert (cumulative[0.001], cumulative[0.5], cumulative[3_600.0]) == (2, 3, 3)
    assert cumulative[float("inf")] == histogram.count == 4
    assert histogram.total == pytest.approx(10_000.3015)


def test_counters_add_up_over_tasks() -> None:
    telemetry = Telemetry()
    telemetry.of("a", "q").completed += 2
    telemetry.of("a", "r").count("retry")
    telemetry.of("b", "q").count("retry")
    assert telemetry.of("a", "q") is telemetry.of("a", "q")
    assert telemetry.outcomes() == {"completed": 2, "retry": 2}


@given(st.lists(st.floats(0.0, 100_000.0), min_size=3, max_size=200), st.randoms())
def test_sums_of_durations_are_the_same_in_any_order(
    durations: list[float], chance: random.Random
) -> None:
    """A counter of Prometheus may not go back by a bit when a worker's part is added elsewhere."""
    workers = [Histogram() for _ in range(3)]
    for number, seconds in enumerate(durations):
        workers[number % 3].observe(seconds)
    sums = set()
    for _ in range(6):
        chance.shuffle(workers)
        total = Histogram()
        for each in workers:
            total.add(each)
        sums.add(total.total)
    assert len(sums) == 1
    half = Histogram(list(workers[0].counts), workers[0].total)
    assert total.since(half).total + half.total == total.total
    assert sums.pop() == pytest.approx(sum(durations), abs=len(durations) / GRAIN)
