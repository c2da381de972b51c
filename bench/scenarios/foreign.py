"""What jobs of other programs cost: tasks that the worker does not know, in front of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.figures import Finding
from bench.scenarios.growth import Turns, compared, in_turns
from bench.scenarios.stage import Stage

TASKS = 500


def foreign(stage: Stage) -> Iterator[Finding]:
    """A worker with many tasks, and one with a backlog in front that is not its own."""
    yield compared(
        stage,
        f"a worker with {TASKS} tasks",
        in_turns(stage, lambda: _own(stage, tasks=TASKS)[0]),
        0.95,
    )
    backlog = stage.jobs(100_000)
    for tasks in (0, TASKS):
        turns, passed, usual = Turns(), [], []
        for _ in range(stage.runs(3)):
            rate, first = _own(stage)
            turns.plain.append(rate)
            usual.append(first)
            rate, first = _own(stage, tasks=tasks, backlog=backlog)
            turns.rates.append(rate)
            passed.append(first)
        known = f", {tasks} tasks known" if tasks else ""
        yield compared(
            stage,
            f"{backlog:,} foreign jobs in front{known}",
            turns,
            0.95,
            note=f"first own job {min(passed):.2f} s after the worker's start; {min(usual):.2f} s "
            "without the others",
        )


def _own(stage: Stage, *, tasks: int = 0, backlog: int = 0) -> tuple[float, float]:
    """The rate of a worker's own jobs, and after how many seconds the first of them began."""
    count = stage.window
    with stage.fresh():
        ticks = stage.ticks(count)
        if backlog:
            stage.fill("foreign", backlog)
        stage.fill("tick", count)
        begun = time.monotonic()
        with stage.worker(tasks=tasks) as process:
            stage.until(lambda: ticks.count > 0, process)
            first = time.monotonic() - begun
            stage.until(lambda: ticks.count >= count, process)
        return ticks.rate(0, count), first
