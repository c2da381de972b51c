"""What workers have counted, as metrics: of one of them, or of all together."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.monitor.metrics.text import Metric, counter
from headrace.telemetry import OTHERS, TaskCounters, Telemetry

# A histogram is 21 series. So many tasks in queues have their own; the rest is counted together.
MOST_HISTOGRAMS = 100
_LABELS = ("task", "queue")
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


def counted_metrics(total: Telemetry) -> Iterator[Metric]:
    """Return the metrics. `total.tasks` is in the order in which they were first seen, so that none
    is ever moved to the others.
    """
    outcomes: list[tuple[list[str], float]] = []
    wait = Metric("wait_seconds", "histogram", "From due to started.", _LABELS)
    run = Metric("run_seconds", "histogram", "From started to ended.", _LABELS)
    rest = TaskCounters(OTHERS, OTHERS)
    own = [each for each in total.tasks.values() if each.task != OTHERS]
    for number, counters in enumerate(own):
        place = [counters.task, counters.queue]
        outcomes += [([*place, name], count) for name, count in counters.outcomes().items()]
        if number >= MOST_HISTOGRAMS:
            rest.wait.add(counters.wait)
            rest.run.add(counters.run)
        elif counters.attempts:
            wait.histograms.append((place, counters.wait))
            run.histograms.append((place, counters.run))
    others = total.tasks.get((OTHERS, OTHERS))
    if others is not None:
        rest.wait.add(others.wait)
        rest.run.add(others.run)
        outcomes += [([OTHERS, OTHERS, name], count) for name, count in others.outcomes().items()]
    if rest.run.count or rest.wait.count:
        wait.histograms.append(([OTHERS, OTHERS], rest.wait))
        run.histograms.append(([OTHERS, OTHERS], rest.run))
    exchange = Metric("exchange_seconds", "histogram", "Round trips to the engine.")
    exchange.histograms.append(([], total.exchange_seconds))
    yield counter("attempts", "Attempts by how they ended.", [*_LABELS, "outcome"], outcomes)
    yield from (wait, run, exchange)
    for name, field, words in _COUNTERS:
        yield counter(name, words, [], [([], getattr(total, field))])
