"""The counters of one worker, from its own process, in names that never change."""

from __future__ import annotations

from headrace.monitor.counters.codec import COUNTERS
from headrace.monitor.counters.total import MOST_NAMED
from headrace.telemetry import OTHERS, TaskCounters, Telemetry

Pair = tuple[str, str]


class OwnCounters:
    """Reads a worker's counters so that none ever goes back or is counted under two names.

    A worker counts tasks in queues that had nothing for long among the others, and begins anew when
    they come back. Here a pair that was seen once keeps its name and all that it ever counted; what
    was moved to the others is taken from them again. Pairs beyond `MOST_NAMED` are counted among
    the others from the first time that they are seen.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        # For each pair with a name: the counters that count now, and all that did so before.
        self._current: dict[Pair, TaskCounters] = {}
        self._before: dict[Pair, TaskCounters] = {}
        # Everything in `_before`, which the worker has among the others.
        self._moved = TaskCounters(OTHERS, OTHERS)
        # The seconds that the others waited and ran, as they were last returned.
        self._waited = self._ran = 0.0

    def read(self) -> Telemetry:
        """Return a copy of what was counted since the worker started."""
        telemetry = self._telemetry
        found = Telemetry()
        found.exchange_seconds.add(telemetry.exchange_seconds)
        for name in COUNTERS:
            setattr(found, name, getattr(telemetry, name))
        tasks = dict(telemetry.tasks)
        for pair, counters in list(self._current.items()):
            if tasks.get(pair) is not counters:
                self._begin_anew(pair, counters)
        rest = TaskCounters(OTHERS, OTHERS)
        if (others := tasks.pop((OTHERS, OTHERS), None)) is not None:
            rest = others.since(self._moved)
        for pair, counters in tasks.items():
            if pair in self._before or len(self._before) < MOST_NAMED:
                self._before.setdefault(pair, TaskCounters(*pair))
                self._current[pair] = counters
            else:
                rest.add(counters)
        for pair, before in self._before.items():
            total = found.of(*pair)
            total.add(before)
            if (current := self._current.get(pair)) is not None:
                total.add(current)
        # Rounding must not make a sum go back: Prometheus would take it for a restart.
        self._waited = rest.wait.total = max(self._waited, rest.wait.total)
        self._ran = rest.run.total = max(self._ran, rest.run.total)
        if rest.attempts:
            found.tasks[OTHERS, OTHERS] = rest
        return found

    def _begin_anew(self, pair: Pair, counters: TaskCounters) -> None:
        del self._current[pair]
        self._before[pair].add(counters)
        self._moved.add(counters)
