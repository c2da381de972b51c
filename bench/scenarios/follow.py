"""Jobs that follow from an outcome, beside jobs that were stored before.

Each of the first jobs is followed by one (`ctx.then`), which is stored with its outcome and run by
the same worker. What is compared are starts of all of them with starts of as many jobs that follow
from nothing, in turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Finding
from bench.scenarios.stage import SLOTS, Stage

RUNS = 3
SHARE = 0.5


def follow(stage: Stage) -> Iterator[Finding]:
    """One question on one engine."""
    count = stage.window // 2
    ours = plain = 0.0
    for _ in range(stage.runs(RUNS)):
        with stage.fresh():
            ticks = stage.ticks(2 * count)
            stage.fill("lead", count)
            ours = max(ours, stage.drain(ticks, 2 * count))
        plain = max(plain, stage.plain())
    yield Finding(
        scenario="follow",
        engine=stage.engine,
        case=f"{count:,} jobs and one that follows each, {SLOTS} slots",
        value=ours,
        unit="jobs/s",
        reference=plain,
        ratio=ours / plain,
        bar="≥ half of the drain rate",
        met=ours / plain >= SHARE,
    )
