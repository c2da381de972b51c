"""What is so now, as metrics: queues, lanes, limits, workers and dispatchers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headrace.breakers.store import open_breakers
from headrace.engine.base import Engine
from headrace.model.views import LaneView, QueueView
from headrace.monitor.metrics.text import Metric, gauge
from headrace.telemetry import Telemetry
from headrace.version import __version__


class WorkerNumbers(Protocol):
    """What is shown of a worker: of any, as the store knows it, or of this process."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def cpu_percent(self) -> float: ...
    @property
    def healthy(self) -> bool: ...
    @property
    def alive(self) -> bool: ...


class Limits(NamedTuple):
    """Queues that are held, and how many breakers are open, by queue."""

    held: frozenset[str]
    open_breakers: Mapping[str, int]


MOST_QUEUES = 10_000
_STATES = ("scheduled", "waiting", "ready", "running")


def process_metrics(*, engine_up: bool) -> Iterator[Metric]:
    """Return what every process has."""
    yield gauge("build", "The version in the label.", ["version"], [([__version__], 1)])
    yield gauge("engine_up", "Whether the engine answers.", [], [([], engine_up)])


def queue_metrics(queues: Sequence[QueueView]) -> Iterator[Metric]:
    """Return how deep queues are."""
    depth = [([each.name, state], getattr(each, state)) for each in queues for state in _STATES]
    yield gauge("queue_jobs", "Unfinished jobs.", ["queue", "state"], depth)
    oldest = [([each.name], each.oldest_age or 0.0) for each in queues]
    yield gauge("queue_oldest_seconds", "Age of the oldest pending job.", ["queue"], oldest)
    paused = [([each.name], each.paused) for each in queues]
    yield gauge("queue_paused", "1 while paused.", ["queue"], paused)


def lane_metrics(lanes: Sequence[LaneView]) -> Iterator[Metric]:
    """Return how many wait. The name of a lane may be made of the arguments of its jobs."""
    for field, words in (
        ("waiting", "Jobs that wait for their lane; the longest lanes."),
        ("used", "Places taken in a lane."),
    ):
        values = [([lane.queue, lane.lane], getattr(lane, field)) for lane in lanes]
        yield gauge(f"lane_{field}", words, ["queue", "lane"], values)


def limit_metrics(queues: Sequence[QueueView], limits: Limits) -> Iterator[Metric]:
    """Return which queues are held, and how many breakers are open in each."""
    held = [([each.name], each.name in limits.held) for each in queues]
    yield gauge("queue_held", "1 while nothing of it starts before a time.", ["queue"], held)
    names = {each.name for each in queues} | limits.open_breakers.keys()
    counted = [([name], limits.open_breakers.get(name, 0)) for name in sorted(names)]
    yield gauge("breakers_open", "Circuit breakers that are open.", ["queue"], counted)


async def read_limits(engine: Engine) -> Limits:
    """Read which queues are held, and which breakers are open."""
    rates = await engine.rates(lane="", limit=MOST_QUEUES)
    held = frozenset(each.queue for each in rates if each.held_until is not None)
    return Limits(held, Counter(queue for queue, _ in await open_breakers(engine)))


def worker_metrics(
    workers: Sequence[WorkerNumbers], listening: Mapping[str, Telemetry]
) -> Iterator[Metric]:
    """Return how many workers there are, and what those that are alive do."""
    alive = [worker for worker in workers if worker.alive]
    healthy = sum(worker.healthy for worker in alive)
    lost = len(workers) - len(alive)
    count = {"healthy": healthy, "unhealthy": len(alive) - healthy, "lost": lost}
    states = [([state], number) for state, number in count.items()]
    yield gauge("workers", "Workers by state.", ["state"], states)
    for field, words in (
        ("running", "Jobs that it runs."),
        ("slots", "Jobs that it can run at once."),
        ("memory_bytes", "Memory."),
        ("cpu_percent", "Processor time, in percent of one core."),
    ):
        values = [([worker.name, worker.host], getattr(worker, field)) for worker in alive]
        yield gauge(f"worker_{field}", words, ["worker", "host"], values)
    wakeups = [([name], each.listening) for name, each in listening.items()]
    yield gauge("worker_listening", "Whether wake-ups arrive.", ["worker"], wakeups)


def dispatcher_metrics(dispatchers: Sequence[Mapping[str, Any]]) -> Iterator[Metric]:
    """Return how far dispatchers are behind, from their reports."""
    labels = ["dispatcher", "adapter"]
    for field, words in (
        ("lag", "Messages not taken in yet."),
        ("late_seconds", "How late the last job of a schedule was."),
    ):
        values = [
            ([each["name"], str(each["adapter"])], each[field])
            for each in dispatchers
            # The last report of a dead one is not its state now.
            if not each["silent"] and isinstance(each.get(field), int | float)
        ]
        yield gauge(f"dispatcher_{field}", words, labels, values)
    seen = [
        ([each["name"], str(each["adapter"])], each["seen_at"].timestamp()) for each in dispatchers
    ]
    yield gauge("dispatcher_seen_timestamp_seconds", "When it was last well.", labels, seen)
