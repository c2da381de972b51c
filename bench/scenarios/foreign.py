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
        yield from _in_front(stage, backlog, tasks)


def _in_front(stage: Stage, backlog: int, tasks: int) -> Iterator[Finding]:
    """The rate behind foreign jobs, against that in an empty store, and in one that has as many
    other jobs: any engine is slower in a larger store, whatever is in it.
    """
    rates, empty, filled = [], [], []
    passed, usual = [], []
    for _ in range(stage.runs(3)):
        rate, first = _own(stage, tasks=tasks)
        empty.append(rate)
        usual.append(first)
        filled.append(_own(stage, tasks=tasks, others=("later", backlog))[0])
        rate, first = _own(stage, tasks=tasks, others=("foreign", backlog))
        rates.append(rate)
        passed.append(first)
    known = f", {tasks} tasks known" if tasks else ""
    case = f"{backlog:,} foreign jobs in front{known}"
    note = (
        f"first own job {min(passed):.2f} s after the worker's start; {min(usual):.2f} s without "
        "the others"
    )
    yield compared(stage, case, Turns(rates, empty), 0.95, note=note)
    yield compared(
        stage,
        f"{case}, to as many scheduled ones",
        Turns(rates, filled),
        0.95,
        note=f"with those it is {max(filled) / max(empty):.0%} of the rate in an empty store",
    )


def _own(
    stage: Stage, *, tasks: int = 0, others: tuple[str, int] | None = None
) -> tuple[float, float]:
    """The rate of a worker's own jobs, and after how many seconds the first of them began. `others`
    are of what kind, and how many.
    """
    count = stage.window
    with stage.fresh():
        # Moving foreign jobs away is written down as well: with them the file passes that size.
        stage.arena.rewrite_nothing()
        ticks = stage.ticks(count)
        if others is not None:
            stage.fill(*others)
        stage.fill("tick", count)
        begun = time.monotonic()
        with stage.worker(tasks=tasks) as process:
            stage.until(lambda: ticks.count > 0, process)
            first = time.monotonic() - begun
            stage.until(lambda: ticks.count >= count, process)
        return ticks.rate(0, count), first
