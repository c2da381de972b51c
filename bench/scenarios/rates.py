"""Jobs that start at the rates of their keys, beside a key with very many that have to wait."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.stage import LIMIT_SECONDS, SLOTS, Stage
from headrace.model.limits.rate import as_rate

PROGRAM = "bench.scenarios.rates_program"
# A rate is bounded from above, so that one run tells.
RUNS = 1
# Keys, and at how many starts a second.
KEYS, PER_SECOND = 20, 20
SECONDS, QUICK_SECONDS = 15, 3
THROTTLED = 100_000
LEAST_SHARE = 0.8


def rates(stage: Stage) -> Iterator[Finding]:
    """One question on one engine."""
    throttled = stage.jobs(THROTTLED)
    allowed = float(KEYS * PER_SECOND)
    beside = alone = 0.0
    for _ in range(stage.runs(RUNS)):
        alone = max(alone, started(stage, 0))
        beside = max(beside, started(stage, throttled))
    yield Finding(
        scenario="rates",
        engine=stage.engine,
        case=(
            f"{KEYS} keys at {PER_SECOND} starts/s each, beside one with {throttled:,} jobs that "
            f"wait for theirs, {SLOTS} slots (without it {alone / allowed:.0%} of the rate)"
        ),
        value=beside,
        unit="jobs/s",
        reference=allowed,
        ratio=beside / allowed,
        bar=f"≥ {LEAST_SHARE:.0%} of their rate",
        met=beside / allowed >= LEAST_SHARE,
    )


def started(stage: Stage, throttled: int) -> float:
    """Let one worker start the jobs of all keys; answer how many a second of those that may."""
    seconds = SECONDS if stage.scale == 1 else QUICK_SECONDS
    count = KEYS * PER_SECOND * seconds // Ticks.EVERY * Ticks.EVERY
    with stage.fresh():
        ticks = stage.ticks(count)
        call = stage.arena.call
        for task, jobs in (("slow", throttled), ("tick", count)):
            call(PROGRAM, "fill", "--task", task, "--count", jobs, limit=LIMIT_SECONDS)
        stage.arena.come_to_rest()
        environment = {"BENCH_SLOTS": str(SLOTS)}
        with stage.arena.process(PROGRAM, "worker", environment=environment, stop=True) as worker:
            # Keys do not run dry all at once, so the last second is not looked at.
            last = count * (seconds - 1) // seconds // Ticks.EVERY * Ticks.EVERY
            stage.until(lambda: ticks.count >= last, worker)
        # What may start at once when the worker comes is no rate.
        bursts = KEYS * as_rate(f"{PER_SECOND}/s").burst
        return ticks.rate(-(-bursts // Ticks.EVERY) * Ticks.EVERY, last)
