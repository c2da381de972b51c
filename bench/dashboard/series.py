"""What writing series costs a drain.

A record a minute cannot be seen in a drain of some seconds. So the worker writes two a second, and
takes turns with one that looks at its counters as often and writes none; a hundred-and-twentieth of
the difference is what series cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.dashboard.program import LOOK_AT_COUNTERS
from bench.dashboard.site import PROGRAM, at_most
from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.stage import Stage
from headrace.monitor.series.records import MINUTE

COUNT = 60_000
TURNS = 3
MOST_PERCENT = 1.0
# How much more often than in use.
TIMES = MINUTE.seconds / LOOK_AT_COUNTERS


def series(stage: Stage) -> Iterator[Finding]:
    """The share of a drain that series take, on one engine."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(stage.runs(TURNS)):
        for writes in (True, False) if turn % 2 else (False, True):
            rates[writes].append(_drain(stage, writes=writes))
    yield judged(stage, rates[True], rates[False])


def judged(stage: Stage, often: list[float], never: list[float]) -> Finding:
    """The cost at the pace of use. Below nothing is noise, and is told as it is."""
    with_, without = median(often), median(never)
    percent = 100 * (1 - with_ / without) / TIMES
    return at_most(
        stage,
        "writing series, of a drain",
        percent,
        MOST_PERCENT,
        "%",
        note=(
            f"with a record every {LOOK_AT_COUNTERS:g} s: {with_:,.0f} jobs/s "
            f"({min(often):,.0f} to {max(often):,.0f}), without {without:,.0f} "
            f"({min(never):,.0f} to {max(never):,.0f}); "
            f"in use it is one a minute, and the cost 1/{TIMES:g}"
        ),
    )


def _drain(stage: Stage, *, writes: bool) -> float:
    count = max(stage.jobs(COUNT) // Ticks.EVERY, 2) * Ticks.EVERY
    with stage.fresh():
        ticks = stage.ticks(count)
        stage.fill("tick", count)
        options = ("worker", "--series") if writes else ("worker",)
        with stage.arena.process(PROGRAM, *options, stop=True) as process:
            stage.until(lambda: ticks.count >= count, process)
        return ticks.rate(0, count)
