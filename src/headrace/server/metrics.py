"""Metrics for Prometheus: of the engine, and what all workers have ever counted together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from headrace.errors import HeadraceError
from headrace.monitor.counters.total import read_counters
from headrace.monitor.snapshot import Snapshot
from headrace.server.service import Service
from headrace.telemetry import OTHERS, Histogram, TaskCounters, Telemetry
from headrace.version import __version__

# A histogram is 21 series. So many tasks in queues have their own; the rest is counted together.
MOST_HISTOGRAMS = 100
_STATES = ("scheduled", "waiting", "ready", "running")


async def exposition(service: Service) -> tuple[bytes, str]:
    """Return the text and its content type. While the engine is away it has what it can."""
    registry = CollectorRegistry()
    registry.register(await read_numbers(service))
    return generate_latest(registry), CONTENT_TYPE_LATEST


async def read_numbers(service: Service) -> Collector:
    """Return all metrics as they are now."""
    snapshot: Snapshot | None = None
    counters: Telemetry | None = None
    with contextlib.suppress(HeadraceError):
        snapshot = await service.snapshots.get()
        counters = await service.counters.get(None, lambda: read_counters(service.app.engine))
    return _Numbers(service, snapshot, counters)


class _Numbers(Collector):
    def __init__(
        self, service: Service, snapshot: Snapshot | None, counters: Telemetry | None
    ) -> None:
        self._service = service
        self._snapshot = snapshot
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        snapshot = self._snapshot
        yield _gauge("build", "The version in the label.", ["version"], [([__version__], 1)])
        yield _gauge("engine_up", "Whether the engine answers.", [], [([], snapshot is not None)])
        streams = len(self._service.subscribers)
        yield _gauge("event_streams", "Open event streams.", [], [([], streams)])
        if snapshot is not None:
            yield from _queues(snapshot)
            yield from _lanes(snapshot)
            yield from _workers(snapshot)
            yield from _dispatchers(snapshot)
        if self._counters is not None:
            yield from _counted(self._counters)


def _gauge(
    name: str, words: str, labels: list[str], values: Iterable[tuple[list[str], float]]
) -> Metric:
    metric = GaugeMetricFamily(f"headrace_{name}", words, labels=labels)
    for place, value in values:
        metric.add_metric(place, float(value))
    return metric


def _queues(snapshot: Snapshot) -> Iterator[Metric]:
    queues = snapshot.queues
    depth = [([each.name, state], getattr(each, state)) for each in queues for state in _STATES]
    yield _gauge("queue_jobs", "Unfinished jobs.", ["queue", "state"], depth)
    oldest = [([each.name], each.oldest_age or 0.0) for each in queues]
    yield _gauge("queue_oldest_seconds", "Age of the oldest pending job.", ["queue"], oldest)
    paused = [([each.name], each.paused) for each in queues]
    yield _gauge("queue_paused", "1 while paused.", ["queue"], paused)


def _lanes(snapshot: Snapshot) -> Iterator[Metric]:
    for field, words in (
        ("waiting", "Jobs that wait for their lane; the longest lanes."),
        ("used", "Places taken in a lane."),
    ):
        values = [([lane.queue, lane.lane], getattr(lane, field)) for lane in snapshot.lanes]
        yield _gauge(f"lane_{field}", words, ["queue", "lane"], values)


def _workers(snapshot: Snapshot) -> Iterator[Metric]:
    alive = [worker for worker in snapshot.workers if worker.alive]
    healthy = sum(worker.healthy for worker in alive)
    lost = len(snapshot.workers) - len(alive)
    count = {"healthy": healthy, "unhealthy": len(alive) - healthy, "lost": lost}
    states = [([state], number) for state, number in count.items()]
    yield _gauge("workers", "Workers by state.", ["state"], states)
    for field, words in (
        ("running", "Jobs that it runs."),
        ("slots", "Jobs that it can run at once."),
        ("memory_bytes", "Memory."),
        ("cpu_percent", "Processor time, in percent of one core."),
    ):
        values = [([worker.name, worker.host], getattr(worker, field)) for worker in alive]
        yield _gauge(f"worker_{field}", words, ["worker", "host"], values)
    listening = [([name], each.listening) for name, each in snapshot.telemetry.items()]
    yield _gauge("worker_listening", "Whether wake-ups arrive.", ["worker"], listening)


def _dispatchers(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["dispatcher", "adapter"]
    for field, words in (
        ("lag", "Messages not taken in yet."),
        ("late_seconds", "How late the last job of a schedule was."),
    ):
        values = [
            ([each["name"], str(each["adapter"])], each[field])
            for each in snapshot.dispatchers
            # The last report of a dead one is not its state now.
            if not each["silent"] and isinstance(each.get(field), int | float)
        ]
        yield _gauge(f"dispatcher_{field}", words, labels, values)
    seen = [
        ([each["name"], str(each["adapter"])], each["seen_at"].timestamp())
        for each in snapshot.dispatchers
    ]
    yield _gauge("dispatcher_seen_timestamp_seconds", "When it was last well.", labels, seen)


_COUNTERS = (
    ("worker_claimed", "claimed", "Jobs claimed."),
    ("worker_released", "released", "Jobs given back unstarted."),
    ("worker_refused", "refused", "Outcomes that were refused."),
    ("worker_exchange_failures", "exchange_failures", "Round trips that failed."),
    ("worker_renewals", "renewals", "Leases renewed."),
    ("worker_lease_failures", "lease_failures", "Renewals that failed."),
    ("worker_leases_lost", "leases_lost", "Leases lost."),
    ("loop_blocks", "blocks", "Times that a handler blocked the event loop."),
    ("loop_block_seconds", "block_seconds", "For how long."),
)


def _counted(total: Telemetry) -> Iterator[Metric]:
    labels = ["task", "queue"]
    outcomes = CounterMetricFamily(
        "headrace_attempts", "Attempts by how they ended.", labels=[*labels, "outcome"]
    )
    wait = HistogramMetricFamily("headrace_wait_seconds", "From due to started.", labels=labels)
    run = HistogramMetricFamily("headrace_run_seconds", "From started to ended.", labels=labels)
    rest = TaskCounters(OTHERS, OTHERS)
    # In the order in which they were first seen, so that none is ever moved to the others.
    for number, counters in enumerate(each for each in total.tasks.values() if _own(each)):
        place = [counters.task, counters.queue]
        for outcome, count in counters.outcomes().items():
            outcomes.add_metric([*place, outcome], count)
        if number < MOST_HISTOGRAMS:
            if counters.attempts:
                _add(wait, place, counters.wait)
                _add(run, place, counters.run)
        else:
            rest.wait.add(counters.wait)
            rest.run.add(counters.run)
    others = total.tasks.get((OTHERS, OTHERS))
    if others is not None:
        rest.wait.add(others.wait)
        rest.run.add(others.run)
        for outcome, count in others.outcomes().items():
            outcomes.add_metric([OTHERS, OTHERS, outcome], count)
    if rest.run.count or rest.wait.count:
        _add(wait, [OTHERS, OTHERS], rest.wait)
        _add(run, [OTHERS, OTHERS], rest.run)
    exchange = HistogramMetricFamily(
        "headrace_exchange_seconds", "Round trips to the engine.", labels=[]
    )
    _add(exchange, [], total.exchange_seconds)
    yield from (outcomes, wait, run, exchange)
    for name, field, words in _COUNTERS:
        counter = CounterMetricFamily(f"headrace_{name}", words)
        counter.add_metric([], getattr(total, field))
        yield counter


def _own(counters: TaskCounters) -> bool:
    return counters.task != OTHERS


def _add(metric: HistogramMetricFamily, labels: list[str], values: Histogram) -> None:
    buckets = [
        ("+Inf" if bound == float("inf") else repr(bound), float(count))
        for bound, count in values.cumulative()
    ]
    metric.add_metric(labels, buckets=buckets, sum_value=values.total)
