"""Stages: how many a second beside DBOS, what they cost; children, and jobs that wait."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contenders import CONTENDERS
from bench.environments import python_for
from bench.figures import Finding
from bench.scenarios.stage import Stage

PROGRAM = "bench.scenarios.stages_program"
DBOS_PROGRAM = "bench.peers.dbos_steps_program"
RUNS = 2
JOBS = 20
STAGES = 100
TIMES = 3
LONG = 1_000
MOST_WRITES = 1.5
CHILDREN = 10_000
WAITING = 2_000
# Less than this is the allocator's business.
GROWTH_MB = 2.0
# What SQLite may keep of its file in the memory of who uses it.
PAGE_CACHE_MB = 16.0


def stages(stage: Stage) -> Iterator[Finding]:
    """All questions on one engine."""
    yield _rate(stage)
    yield _cost(stage)
    yield _children(stage)
    yield from _waiting(stage)


def _rate(stage: Stage) -> Finding:
    ours = theirs = 0.0
    jobs = max(stage.jobs(JOBS), 10)
    # In turns, so that a busy moment of the machine does not fall on all runs of one of them.
    for _ in range(stage.runs(RUNS)):
        with stage.fresh():
            options = ("--jobs", jobs, "--stages", STAGES)
            ours = max(ours, stage.arena.call(PROGRAM, "stages", *options)["rate"])
        if stage.engine == "postgres":
            theirs = max(theirs, _dbos(stage, jobs))
    finding = Finding(
        scenario="stages",
        engine=stage.engine,
        case=f"{jobs} jobs of {STAGES} stages, one worker, 10 slots",
        value=ours,
        unit="stages/s",
    )
    if theirs:
        finding.reference, finding.ratio = theirs, ours / theirs
        finding.bar = f"≥ {TIMES}x DBOS"
        finding.met = finding.ratio >= TIMES
    return finding


def _dbos(stage: Stage, jobs: int) -> float:
    dbos = next(each for each in CONTENDERS if each.program.endswith("dbos_program"))
    with stage.fresh():
        rates: dict[str, float] = stage.arena.call(
            DBOS_PROGRAM, "--jobs", jobs, "--stages", STAGES, python=python_for(dbos)
        )
    return max(rates.values())


def _cost(stage: Stage) -> Finding:
    with stage.fresh():
        answer = stage.arena.call(PROGRAM, "stages", "--jobs", 1, "--stages", LONG)
    return Finding(
        scenario="stages",
        engine=stage.engine,
        case=f"one job of {LONG:,} stages",
        value=answer["writes"],
        unit="writes per stage",
        bar=f"≤ {MOST_WRITES:g}",
        met=answer["writes"] <= MOST_WRITES,
        note=f"one after the other: {answer['rate']:,.0f} stages/s",
    )


def _children(stage: Stage) -> Finding:
    count = max(stage.jobs(CHILDREN), 1_000)
    with stage.fresh():
        seconds = stage.arena.call(PROGRAM, "children", "--jobs", count, limit=600)["seconds"]
    return Finding(
        scenario="stages",
        engine=stage.engine,
        case=f"{count:,} children fanned out and collected",
        value=count / seconds,
        unit="children/s",
        note=f"{seconds:.2f} s from the parent's enqueue to its result",
    )


def _waiting(stage: Stage) -> Iterator[Finding]:
    count = max(stage.jobs(WAITING), 1_000)
    with stage.fresh():
        answer = stage.arena.call(PROGRAM, "waiting", "--jobs", count)
    cache = PAGE_CACHE_MB if stage.engine == "sqlite" else 0.0
    for case, unit, most in (
        ("megabytes", "MB", GROWTH_MB + cache),
        ("connections", "connections", 0.0),
        ("busy", "slots", 0.0),
    ):
        yield Finding(
            scenario="stages",
            engine=stage.engine,
            case=f"{count:,} jobs that wait for a day: held in the worker",
            value=answer[case],
            unit=unit,
            bar=f"< {most:g} MB" if most else "none",
            met=answer[case] < most if most else answer[case] <= 0,
            note="the pages of the store are cached in the worker" if cache and most else "",
        )
