"""One worker, one store, a million jobs: what that says about growth and about memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.figures import Finding
from bench.recorder import Ticks
from bench.scenarios.growth import RUNS, Turns, compared, in_turns
from bench.scenarios.stage import Stage

SAMPLES = 50
# Less than this is the allocator's business.
GROWTH_MB = 2.0


@dataclass
class Million:
    """`pending` and `history` are drain rates with that many jobs waiting or finished; `memory` is
    megabytes over jobs of one worker, from its first job to its last.
    """

    count: int
    filled: float = 0.0
    pending: Turns = field(default_factory=Turns)
    whole: float = 0.0
    history: Turns = field(default_factory=Turns)
    memory: list[tuple[float, float]] = field(default_factory=list)

    def memory_at(self, share: float) -> float:
        """Megabytes when this share of the jobs was done."""
        return min(self.memory, key=lambda at: abs(at[0] - share * self.count))[1]


def million(stage: Stage) -> Iterator[Finding]:
    """Pending, history and memory on one engine, read off one run."""
    with stage.fresh():
        run = _million(stage)
    yield compared(
        stage,
        f"{stage.jobs(stage.backlog):,} pending",
        run.pending,
        0.8,
        f"stored at {run.filled:,.0f}/s; the whole of it was drained at {run.whole:,.0f}/s",
    )
    yield compared(stage, f"{stage.jobs(stage.backlog):,} of history", run.history, 0.8)
    yield _memory(stage, run)


def _memory(stage: Stage, run: Million) -> Finding:
    shares = {share: run.memory_at(share) for share in (0.0, 0.1, 0.5, 1.0)}
    return Finding(
        scenario="memory",
        engine=stage.engine,
        case=f"one worker over {run.count:,} jobs",
        value=shares[1.0],
        unit="MB",
        reference=shares[0.1],
        ratio=shares[1.0] / shares[0.1],
        bar=f"no growth (< {GROWTH_MB:g} MB after a tenth)",
        met=shares[1.0] - shares[0.1] < GROWTH_MB,
        note=", ".join(
            f"{'at the first job' if share == 0 else f'{share:.0%}'} {size:.1f}"
            for share, size in shares.items()
        ),
        series=run.memory,
    )


def _million(stage: Stage) -> Million:
    count, window = stage.jobs(stage.backlog), stage.window
    found = Million(count)
    # Workers take a window each, one after the other, while (nearly) all wait; then one the rest.
    total = count + (RUNS + 1) * window
    ticks = stage.ticks(total + 2 * (RUNS + 1) * window)
    found.filled = stage.fill("tick", total)
    found.pending = in_turns(stage, lambda: stage.drain(ticks, window))
    first = -(-ticks.count // Ticks.EVERY) * Ticks.EVERY + Ticks.EVERY
    found.count = total - first
    with stage.worker() as process:
        for sample in range(SAMPLES + 1):
            mark = first + sample * found.count // SAMPLES
            stage.until(lambda mark=mark: ticks.count >= mark, process)  # type: ignore[misc]
            found.memory.append((ticks.count - first, stage.arena.memory_mb(process)))
        found.whole = ticks.rate(first, total // Ticks.EVERY * Ticks.EVERY)

    def after_all() -> float:
        nonlocal total
        stage.fill("tick", 2 * window)
        rate = stage.drain(ticks, window)
        total += 2 * window
        # What is left goes before the next fill, so that each begins with the same.
        with stage.worker() as process:
            stage.until(lambda: ticks.count >= total, process)
        return rate

    found.history = in_turns(stage, after_all)
    return found
