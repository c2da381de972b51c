"""Jobs that insert a row each: fifty with one call of the handler, beside one with each."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.chunks_program import SIZE
from bench.scenarios.stage import LIMIT_SECONDS, SLOTS, Stage

PROGRAM = "bench.scenarios.chunks_program"
RUNS = 3
JOBS = 20_000
# One by one it takes far longer: fewer are enough for a rate.
JOBS_ALONE = 5_000
TIMES = 5


def chunks(stage: Stage) -> Iterator[Finding]:
    """One question on one engine."""
    count, alone = _hundreds(stage.jobs(JOBS)), _hundreds(stage.jobs(JOBS_ALONE))
    together = single = 0.0
    for _ in range(stage.runs(RUNS)):
        together = max(together, drained(stage, "many", count))
        single = max(single, drained(stage, "one", alone))
    yield Finding(
        scenario="chunks",
        engine=stage.engine,
        case=f"{count:,} inserts, {SIZE} jobs to a call, {SLOTS} slots",
        value=together,
        unit="jobs/s",
        reference=single,
        ratio=together / single,
        bar=f"≥ {TIMES} times those one by one",
        met=together / single >= TIMES,
    )


def drained(stage: Stage, task: str, count: int) -> float:
    """Let one worker insert so many rows in an empty store; answer rows per second."""
    with stage.fresh():
        ticks = stage.ticks(count)
        call = stage.arena.call
        call(PROGRAM, "fill", "--task", task, "--count", count, limit=LIMIT_SECONDS)
        stage.arena.come_to_rest()
        environment = {"BENCH_SLOTS": str(SLOTS)}
        with stage.arena.process(PROGRAM, "worker", environment=environment, stop=True) as worker:
            stage.until(lambda: ticks.count >= count, worker)
        found = call(PROGRAM, "rows")["count"]
        if found != count:
            raise RuntimeError(f"{count:,} jobs have made {found:,} rows")
        return ticks.rate(0, count)


def _hundreds(count: int) -> int:
    return max(count // Ticks.EVERY, 2) * Ticks.EVERY
