"""Counters and histograms."""

from __future__ import annotations

import pytest

from headrace.telemetry import Histogram, Telemetry


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
