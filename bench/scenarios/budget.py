"""What one job costs: transactions, bytes of log, processor time here and on the server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from bench.arena import family
from bench.figures import Finding
from bench.meters import Cost, metered
from bench.scenarios.stage import Stage

START_SECONDS = 3.0
IDLE_SECONDS = 10.0


@dataclass
class Spent:
    """Of a stretch of work. `here` and `server` are seconds of processor time."""

    cost: Cost
    here: float
    server: float


def budget(stage: Stage) -> Iterator[Finding]:
    """Enqueueing and running on one engine, and what an idle worker does."""
    count = stage.window
    with stage.fresh():
        stage.ticks(count)
        stage.fill("tick", 0)  # makes the schema
        stored = _filled(stage, count)
        yield from _lines(stage, "enqueue many", stored, count)
        ran = _drained(stage, count)
        yield from _lines(stage, "claim, run, settle", ran, count)
    with stage.fresh():
        stage.fill("tick", 0)
        yield from _idle(stage)


def _filled(stage: Stage, count: int) -> Spent:
    with metered(stage.arena.url) as cost:
        server = _server_seconds(stage)
        here = stage.filled("tick", count)["processor"]
        server = _server_seconds(stage) - server
    return Spent(cost, here, server)


def _drained(stage: Stage, count: int) -> Spent:
    ticks = stage.ticks(count)
    seconds: list[tuple[float, float]] = []
    with metered(stage.arena.url) as cost, stage.worker() as process:
        for mark in (1, count):
            stage.until(lambda mark=mark: ticks.count >= mark, process)  # type: ignore[misc]
            seconds.append((_seconds(process), _server_seconds(stage)))
    (here, server), (here_after, server_after) = seconds
    return Spent(cost, here_after - here, server_after - server)


def _idle(stage: Stage) -> Iterator[Finding]:
    with stage.worker() as process:
        time.sleep(START_SECONDS)
        with metered(stage.arena.url) as cost:
            began = time.monotonic()
            before = _seconds(process)
            time.sleep(IDLE_SECONDS)
            share = (_seconds(process) - before) / (time.monotonic() - began)
    minutes = IDLE_SECONDS / 60
    yield _line(stage, "idle worker", "transactions a minute", cost.transactions / minutes)
    yield _line(stage, "idle worker", "log bytes a minute", cost.written / minutes)
    yield _line(stage, "idle worker", "% of a core", 100 * share)


def _lines(stage: Stage, case: str, spent: Spent, count: int) -> Iterator[Finding]:
    cost = spent.cost
    yield _line(stage, case, "jobs per transaction", count / max(cost.transactions, 1))
    yield _line(stage, case, "transactions per 1,000 jobs", 1_000 * cost.transactions / count)
    operations = {"postgres": "rows written", "redis": "commands inside scripts"}
    name = operations.get(stage.engine, "pages written")
    yield _line(stage, case, f"{name} per job", cost.operations / count)
    yield _line(stage, case, "log bytes per job", cost.written / count)
    yield _line(stage, case, "µs of processor here per job", 1e6 * spent.here / count)
    if stage.arena.server is not None:
        yield _line(
            stage, case, "µs of processor on the server per job", 1e6 * spent.server / count
        )


def _line(stage: Stage, case: str, unit: str, value: float) -> Finding:
    return Finding(scenario="budget", engine=stage.engine, case=case, value=value, unit=unit)


def _seconds(process: subprocess.Popen[bytes]) -> float:
    return _sum(lambda: family(process))


def _server_seconds(stage: Stage) -> float:
    server = stage.arena.server
    if server is None or server.process is None:
        return 0.0
    running = server.process
    return _sum(lambda: family(running))


def _sum(processes: Callable[[], list[psutil.Process]]) -> float:
    total = 0.0
    for each in processes():
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # A server's ended children count too, or a connection that closes would take time away.
        total += times.user + times.system + times.children_user + times.children_system
    return total
