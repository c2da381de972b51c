"""Handlers that take time, as a share of the ideal: slots that do nothing but the work.

The ideal is measured in the same run, by loops without a queue: a sleep of 1 ms takes more than
that on any machine. `payloads` asks the same of jobs that carry something.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Finding
from bench.scenarios.stage import PROGRAM, SLOTS, Stage

RUNS = 2
# Short cases are over soon, and suffer most when the host takes the machine away.
TURNS = 4
SHORT_SECONDS = 0.1
SHARE = 0.9
# Task, seconds, slots, jobs.
CASES = [
    ("wait", 0.001, 10, 20_000),
    ("wait", 0.01, 10, 2_500),
    ("wait", 1.0, 10, 40),
    ("wait", 0.001, 100, 40_000),
    ("wait", 0.01, 100, 20_000),
    ("wait", 1.0, 100, 400),
    ("wait_in_thread", 0.001, 10, 10_000),
    ("wait_in_thread", 0.01, 10, 2_500),
    ("wait_in_process", 0.01, 10, 2_500),
    ("wait_in_process", 0.1, 10, 400),
]
KINDS = {"wait": "async", "wait_in_thread": "thread", "wait_in_process": "process"}
# Bytes, jobs that do nothing, jobs that take 10 ms.
SIZES = [(1_000, 20_000, 2_500), (100_000, 2_000, 2_000)]


def handlers(stage: Stage) -> Iterator[Finding]:
    """All cases on one engine."""
    for task, seconds, slots, jobs in CASES:
        # Few rounds of long jobs say as much as many; of short ones the first should not decide.
        count = max(stage.jobs(jobs), (2 if seconds >= 1 else 20) * slots)
        ideal, rate = _in_turns(stage, task, seconds, slots, count)
        yield judged(
            stage,
            "handlers",
            f"{KINDS[task]}, {_span(seconds)}, {slots} slots",
            rate=rate,
            ideal=ideal,
            limit=stage.base,
        )


def payloads(stage: Stage) -> Iterator[Finding]:
    """Small and large arguments, first with nothing to do, then with 10 ms."""
    for size, idle, busy in SIZES:
        count, shown = stage.jobs(idle), f"{size // 1000:,} KB"
        limit = max(_rate(stage, "carry", 0, 1, count, bytes=size) for _ in range(stage.runs(RUNS)))
        yield Finding(
            scenario="payloads",
            engine=stage.engine,
            case=f"{shown}, nothing to do, {SLOTS} slots",
            value=limit,
            unit="jobs/s",
            note=f"the engine's limit at this size: {limit * size / 1e6:,.0f} MB/s",
        )
        count = max(stage.jobs(busy), 20 * SLOTS)
        ideal, rate = _in_turns(stage, "carry", 0.01, SLOTS, count, bytes=size)
        yield judged(
            stage, "payloads", f"{shown}, 10 ms, {SLOTS} slots", rate=rate, ideal=ideal, limit=limit
        )


def judged(
    stage: Stage, scenario: str, case: str, *, rate: float, ideal: float, limit: float
) -> Finding:
    """Within 10% of the ideal, unless that is more than the engine gives anybody."""
    ratio = rate / ideal
    limited = ideal > SHARE * limit
    # Where one event loop serves all slots, what it does for a job keeps all of them waiting.
    more = 1e6 * (1 / rate - 1 / ideal)
    note = (
        f"the engine limits: {limit:,.0f}/s with nothing to do"
        if limited
        else f"{more:,.0f} µs more for each job"
    )
    return Finding(
        scenario=scenario,
        engine=stage.engine,
        case=case,
        value=rate,
        unit="jobs/s",
        reference=ideal,
        ratio=ratio,
        bar=f"≥ {SHARE:.0%} of the ideal",
        met=True if ratio >= SHARE else None if limited else False,
        note=note,
    )


def _in_turns(
    stage: Stage, task: str, seconds: float, slots: int, count: int, **options: object
) -> tuple[float, float]:
    """The ideal and the case itself, the best of each: both should have the same machine."""
    ideal = rate = 0.0
    for _ in range(stage.runs(TURNS if seconds < SHORT_SECONDS else RUNS)):
        ideal = max(ideal, _ideal(stage, task, seconds, slots, count))
        rate = max(rate, _rate(stage, task, seconds, slots, count, **options))
    return ideal, rate


def _ideal(stage: Stage, task: str, seconds: float, slots: int, count: int) -> float:
    kind = "threads" if task in ("wait_in_thread", "wait_in_process") else "wait"
    with stage.fresh():
        record = stage.recorder(count)
        stage.arena.call(
            PROGRAM,
            *("bare", "--kind", kind, "--seconds", seconds),
            *("--slots", slots, "--count", count),
        )
        return record.rate(slots)


def _rate(
    stage: Stage, task: str, seconds: float, slots: int, count: int, **options: object
) -> float:
    # Child processes start with their first job; that is not what is asked here.
    skip = 2 * slots if task == "wait_in_process" else 0
    with stage.fresh():
        record = stage.recorder(count + skip)
        stage.fill(task, count + skip, seconds=seconds, **options)
        with stage.worker(max(slots, SLOTS)) as process:
            stage.until(record.all_started, process)
        return record.rate(slots, skip=skip)


def _span(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"
