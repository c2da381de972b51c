"""Metrics for Prometheus: of the engine, and of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from headrace.monitor.snapshot import Snapshot
from headrace.server.service import Service
from headrace.telemetry import Histogram, Telemetry
from headrace.version import __version__

_STATES = ("scheduled", "waiting", "ready", "running")


async def exposition(service: Service) -> tuple[bytes, str]:
    """Return the text and its content type. While the engine is away it has what it can."""
    try:
        snapshot = await service.snapshots.get()
    except HeadraceError:
        snapshot = None
    registry = CollectorRegistry()
    registry.register(_Numbers(service, snapshot))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Numbers(Collector):
    def __init__(self, service: Service, snapshot: Snapshot | None) -> None:
        self._service = service
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        yield _one("headrace_build", "The version in the label.", 1, version=__version__)
        yield _one("headrace_engine_up", "Whether the engine answers.", self._snapshot is not None)
        yield _one("headrace_event_streams", "Open event streams.", len(self._service.subscribers))
        if self._snapshot is not None:
            yield from _queues(self._snapshot)
            yield from _lanes(self._snapshot)
            yield from _workers(self._snapshot)
            yield from _dispatchers(self._snapshot)
        yield from _counted({} if self._snapshot is None else self._snapshot.telemetry)


def _one(name: str, words: str, value: float, **labels: str) -> Metric:
    metric = GaugeMetricFamily(name, words, labels=list(labels))
    metric.add_metric(list(labels.values()), float(value))
    return metric


def _queues(snapshot: Snapshot) -> Iterator[Metric]:
    depth = GaugeMetricFamily("headrace_queue_jobs", "Unfinished jobs.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        "headrace_queue_oldest_seconds", "Age of the oldest pending job.", labels=["queue"]
    )
    paused = GaugeMetricFamily("headrace_queue_paused", "1 while paused.", labels=["queue"])
    for queue in snapshot.queues:
        for state in _STATES:
            depth.add_metric([queue.name, state], getattr(queue, state))
        oldest.add_metric([queue.name], queue.oldest_age or 0.0)
        paused.add_metric([queue.name], float(queue.paused))
    yield from (depth, oldest, paused)


def _lanes(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["queue", "lane"]
    waiting = GaugeMetricFamily(
        "headrace_lane_waiting", "Jobs that wait for their lane; the longest lanes.", labels=labels
    )
    used = GaugeMetricFamily("headrace_lane_used", "Places taken in a lane.", labels=labels)
    for lane in snapshot.lanes:
        waiting.add_metric([lane.queue, lane.lane], lane.waiting)
        used.add_metric([lane.queue, lane.lane], lane.used)
    yield from (waiting, used)


def _workers(snapshot: Snapshot) -> Iterator[Metric]:
    count = GaugeMetricFamily("headrace_workers", "Workers by state.", labels=["state"])
    alive = [worker for worker in snapshot.workers if worker.alive]
    healthy = sum(worker.healthy for worker in alive)
    count.add_metric(["healthy"], healthy)
    count.add_metric(["unhealthy"], len(alive) - healthy)
    count.add_metric(["lost"], len(snapshot.workers) - len(alive))
    yield count
    for field, words in (
        ("running", "Jobs that it runs."),
        ("slots", "Jobs that it can run at once."),
        ("memory_bytes", "Memory."),
        ("cpu_percent", "Processor time, in percent of one core."),
    ):
        metric = GaugeMetricFamily(f"headrace_worker_{field}", words, labels=["worker", "host"])
        for worker in alive:
            metric.add_metric([worker.name, worker.host], getattr(worker, field))
        yield metric


def _dispatchers(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["dispatcher", "adapter"]
    lag = GaugeMetricFamily("headrace_dispatcher_lag", "Messages not taken in yet.", labels=labels)
    seen = GaugeMetricFamily(
        "headrace_dispatcher_seen_timestamp_seconds", "When it was last well.", labels=labels
    )
    late = GaugeMetricFamily(
        "headrace_dispatcher_late_seconds",
        "How late the last job of a schedule was.",
        labels=labels,
    )
    for each in snapshot.dispatchers:
        place = [each["name"], str(each["adapter"])]
        seen.add_metric(place, each["seen_at"].timestamp())
        if each["silent"]:
            continue  # the last report of a dead one is not its state now
        if isinstance(each.get("lag"), int | float):
            lag.add_metric(place, each["lag"])
        if isinstance(each.get("late_seconds"), int | float):
            late.add_metric(place, each["late_seconds"])
    yield from (lag, late, seen)


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


def _counted(workers: Mapping[str, Telemetry]) -> Iterator[Metric]:
    labels = ["worker", "task", "queue"]
    outcomes = CounterMetricFamily(
        "headrace_attempts", "Attempts by how they ended.", labels=[*labels, "outcome"]
    )
    wait = HistogramMetricFamily("headrace_wait_seconds", "From due to started.", labels=labels)
    run = HistogramMetricFamily("headrace_run_seconds", "From started to ended.", labels=labels)
    exchange = HistogramMetricFamily(
        "headrace_exchange_seconds", "Round trips to the engine.", labels=labels[:1]
    )
    for worker, telemetry in workers.items():
        for counters in list(telemetry.tasks.values()):
            place = [worker, counters.task, counters.queue]
            for outcome, number in counters.outcomes().items():
                outcomes.add_metric([*place, outcome], number)
            _add(wait, place, counters.wait)
            _add(run, place, counters.run)
        _add(exchange, [worker], telemetry.exchange_seconds)
    yield from (outcomes, wait, run, exchange)
    for name, field, words in _COUNTERS:
        counter = CounterMetricFamily(f"headrace_{name}", words, labels=labels[:1])
        for worker, telemetry in workers.items():
            counter.add_metric([worker], getattr(telemetry, field))
        yield counter
    listening = GaugeMetricFamily(
        "headrace_worker_listening", "Whether wake-ups arrive.", labels=labels[:1]
    )
    for worker, telemetry in workers.items():
        listening.add_metric([worker], float(telemetry.listening))
    yield listening


def _add(metric: HistogramMetricFamily, labels: list[str], values: Histogram) -> None:
    buckets = [
        ("+Inf" if bound == float("inf") else repr(bound), float(count))
        for bound, count in values.cumulative()
    ]
    metric.add_metric(labels, buckets=buckets, sum_value=values.total)
