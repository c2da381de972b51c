"""The text format, and the counters of one worker, which never go back."""

from __future__ import annotations

import random

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from headrace.clock import Clock
from headrace.monitor.counters import worker_metrics
from headrace.monitor.counters.total import MOST_NAMED
from headrace.monitor.counters.worker_metrics import Pairs
from headrace.monitor.metrics.counters import counted_metrics
from headrace.monitor.metrics.one_worker import OwnCounters
from headrace.monitor.metrics.text import Metric, counter, gauge, text_of
from headrace.telemetry import OTHERS, Histogram, Telemetry
from tests.probes.conftest import samples_of

ODD = 'a "quoted" \\ back\\n and\nnew line, 규정'


class Fixed(Collector):
    """Metrics for the library of Prometheus to write."""

    def __init__(self, metrics: list[Family]) -> None:
        self.metrics = metrics

    def collect(self) -> list[Family]:
        return self.metrics


def test_the_text_is_what_the_library_of_prometheus_writes() -> None:
    values = Histogram()
    for seconds in (0.0004, 0.3, 0.3, 9_999.0):
        values.observe(seconds)
    histogram = Metric("run_seconds", "histogram", "How long.", ["task", "queue"])
    histogram.histograms.append((["add", "mail"], values))
    ours = text_of(
        [
            gauge(
                "depth", ODD, ["queue", "a"], [([ODD, "1"], 3), (["", "2"], 0.1), (["x", ""], True)]
            ),
            gauge("up", "Up.", [], [([], 1)]),
            counter("done", "Done.", ["task"], [(["add"], 12)]),
            histogram,
        ]
    )
    depth = GaugeMetricFamily("headrace_depth", ODD, labels=["queue", "a"])
    depth.add_metric([ODD, "1"], 3)
    depth.add_metric(["", "2"], 0.1)
    depth.add_metric(["x", ""], 1)
    done = CounterMetricFamily("headrace_done", "Done.", labels=["task"])
    done.add_metric(["add"], 12)
    run = HistogramMetricFamily("headrace_run_seconds", "How long.", labels=["task", "queue"])
    buckets = [
        ("+Inf" if bound == float("inf") else repr(bound), float(count))
        for bound, count in values.cumulative()
    ]
    run.add_metric(["add", "mail"], buckets=buckets, sum_value=values.total)
    registry = CollectorRegistry()
    registry.register(Fixed([depth, GaugeMetricFamily("headrace_up", "Up.", value=1), done, run]))
    assert ours == generate_latest(registry)


def test_half_a_character_costs_nobody_the_metrics() -> None:
    text = text_of([gauge("depth", "Depth.", ["queue"], [(["\ud800"], 1), (["mail"], 2)])])
    [family] = text_string_to_metric_families(text.decode())
    assert [sample.value for sample in family.samples] == [1, 2]


OUTCOMES = ("completed", "failed")


def numbers_of(counted: Telemetry) -> dict[tuple[str, ...], float]:
    """All that only ever grows."""
    found: dict[tuple[str, ...], float] = {}
    for pair, each in counted.tasks.items():
        found |= {(*pair, outcome): count for outcome, count in each.outcomes().items()}
        found[*pair, "waited for"], found[*pair, "ran for"] = each.wait.total, each.run.total
        found[*pair, "ran"] = each.run.count
    return found


def test_no_counter_of_a_worker_goes_back_or_is_counted_twice() -> None:
    """A worker counts what had nothing for long among the others, whenever it is read."""
    random.seed(3)
    telemetry, clock = Telemetry(), Clock()
    pairs = Pairs(telemetry, lambda _: None)
    counters = OwnCounters(telemetry)
    before: dict[tuple[str, ...], float] = {}
    made = 0
    for _ in range(2_000):
        for _ in range(random.randrange(4)):
            counted = telemetry.of(f"task-{random.randrange(5)}", "default")
            counted.wait.observe(0.1)
            counted.run.observe(0.2)
            if random.random() < 0.8:
                counted.completed += 1
            else:
                counted.count("failed")
            made += 1
        if random.random() < 0.3:
            clock.advance(worker_metrics.FOLD_AFTER + 1)
        pairs.fold(clock.now())
        if random.random() < 0.5:
            continue
        now = numbers_of(counters.read())
        assert {name: value for name, value in before.items() if now.get(name, -1.0) < value} == {}
        assert sum(value for name, value in now.items() if name[-1] in OUTCOMES) == made
        assert sum(value for name, value in now.items() if name[-1] == "ran") == made
        before = now
    assert any(OTHERS in name for name in before), "some were moved before they were ever seen"
    shown = samples_of(text_of(counted_metrics(counters.read())))
    assert sum(v for n, v in shown.items() if n.startswith("headrace_attempts_total")) == made


def test_the_names_of_a_worker_are_bounded() -> None:
    telemetry = Telemetry()
    counters = OwnCounters(telemetry)
    for number in range(MOST_NAMED + 50):
        telemetry.of(f"task-{number}", "default").completed += 1
    for _ in range(2):
        found = counters.read()
        assert len(found.tasks) == MOST_NAMED + 1
        assert found.tasks[OTHERS, OTHERS].completed == 50
    # Those without a name may be moved as well; they are where they were.
    telemetry.fold((f"task-{MOST_NAMED + 1}", "default"))
    telemetry.fold(("task-0", "default"))
    found = counters.read()
    assert found.tasks[OTHERS, OTHERS].completed == 50
    assert found.tasks["task-0", "default"].completed == 1
