"""One worker, one store, a million jobs: what it says about growth and about memory."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

from bench.recorder import Ticks
from bench.scenarios.stage import RUNS, Stage

SAMPLES = 50


@dataclass
class Million:
    """`pending` and `history` are drain rates with that many jobs waiting or finished; `memory` is
    megabytes over jobs of one worker, from its first job to its last.
    """

    count: int
    filled: float = 0.0
    pending: float = 0.0
    whole: float = 0.0
    history: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)

    def memory_at(self, share: float) -> float:
        """Megabytes when this share of the jobs was done."""
        return min(self.memory, key=lambda at: abs(at[0] - share * self.count))[1]


# Both growth and memory are read off one run.
_RUN: weakref.WeakKeyDictionary[Stage, Million] = weakref.WeakKeyDictionary()


def million(stage: Stage) -> Million:
    """Run it once for each stage."""
    if stage not in _RUN:
        with stage.fresh():
            _RUN[stage] = _million(stage)
    return _RUN[stage]


def _million(stage: Stage) -> Million:
    count, window = stage.jobs(1_000_000), stage.window
    found = Million(count)
    # Two workers take a window each while (nearly) all wait; the third takes the rest.
    total = count + 3 * window
    ticks = stage.ticks(total + 2 * (RUNS + 1) * window)
    found.filled = stage.fill("tick", total)
    rates = [stage.drain(ticks, window) for _ in range(2)]
    first = -(-ticks.count // Ticks.EVERY) * Ticks.EVERY + Ticks.EVERY
    found.count = total - first
    with stage.worker() as process:
        for sample in range(SAMPLES + 1):
            mark = first + sample * found.count // SAMPLES
            stage.until(lambda mark=mark: ticks.count >= mark, process)  # type: ignore[misc]
            found.memory.append((ticks.count - first, stage.arena.memory_mb(process)))
        rates.append(ticks.rate(first, first + window))
        found.whole = ticks.rate(first, total // Ticks.EVERY * Ticks.EVERY)
    found.pending = max(rates)
    for _ in range(stage.runs(RUNS)):
        stage.fill("tick", 2 * window)
        found.history = max(found.history, stage.drain(ticks, window))
        # What is left goes before the next fill, so that each begins with the same.
        with stage.worker() as process:
            total += 2 * window
            stage.until(lambda total=total: ticks.count >= total, process)  # type: ignore[misc]
    return found
