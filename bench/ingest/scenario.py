"""The bundle `ingest`: documents a second beside a plain loop, a hundred documents at once, and the
memory of a worker. Each part can be run by itself.

The loop has the same parts and as many slots as the worker, and neither a queue, nor a status row
for each stage, nor sealed originals. They take turns, and the best of each counts.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figures import Finding
from bench.scenarios.stage import Stage
from headrace_ingest.bench.documents import (
    CHARACTERS,
    LOOP,
    SLOTS,
    WORKER,
    in_turns,
    measured,
    write_files,
)
from headrace_ingest.bench.hundred import COUNT, Hundred, measure_hundred
from headrace_ingest.bench.memory import HUNDRED, LARGE, LARGE_MEBIBYTES, ONE, loads

NAME = "ingest"
DOCUMENTS = 60
RUNS = 4
SHARE = 0.9
MOST_SECONDS = 10.0
MOST_CONNECTIONS = 5
# A hundred at once need no more than one, but for what a library keeps.
MOST_MORE = 1.2
# What a large file may take of memory: it is sent to a process and opened there.
MOST_TIMES = 4


def documents(stage: Stage) -> Iterator[Finding]:
    """Documents a second by a worker, and by a plain loop."""
    count = max(stage.jobs(DOCUMENTS), SLOTS)
    best = {WORKER: 0.0, LOOP: 0.0}
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        paths = write_files(Path(folder), count)
        for _, way in in_turns(stage.runs(RUNS)):
            with stage.fresh():
                best[way] = max(best[way], count / measured(way, paths, stage.arena.url).seconds)
    share = best[WORKER] / best[LOOP]
    yield Finding(
        scenario=NAME,
        engine=stage.engine,
        case=f"{count} documents of {CHARACTERS:,} characters, {SLOTS} slots",
        value=best[WORKER],
        unit="documents/s",
        reference=best[LOOP],
        ratio=share,
        bar=f"≥ {SHARE:.0%} of a plain loop",
        met=share >= SHARE,
    )


def hundred(stage: Stage) -> Iterator[Finding]:
    """A hundred documents at once: how long each takes, and the connections of the worker."""
    count = max(stage.jobs(COUNT), SLOTS)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder, stage.fresh():
        found = asyncio.run(measure_hundred(stage.arena.url, Path(folder), count))
    yield from _found(stage.engine, count, found)


def _found(engine: str, count: int, found: Hundred) -> Iterator[Finding]:
    yield Finding(
        scenario=NAME,
        engine=engine,
        case=f"{count} documents at once, from handed in to completed",
        value=found.mean,
        unit="s on average",
        bar=f"< {MOST_SECONDS:g} s",
        met=found.mean < MOST_SECONDS,
        note=f"the last after {found.longest:.1f} s; {found.processing:.1f} s of it in processing",
    )
    ours = {name: most for name, most in found.connections.items() if _is_engine(name)}
    tables = {name: most for name, most in found.connections.items() if not _is_engine(name)}
    note = ", ".join(f"{most} as {name}" for name, most in sorted(ours.items()))
    yield Finding(
        scenario=NAME,
        engine=engine,
        case=f"{count} documents at once, connections of the worker to the engine",
        value=sum(ours.values()),
        unit="connections",
        bar=f"≤ {MOST_CONNECTIONS}",
        met=sum(ours.values()) <= MOST_CONNECTIONS,
        note=note or "a file needs none",
    )
    for name, most in sorted(tables.items()):
        yield Finding(
            scenario=NAME,
            engine=engine,
            case=f"{count} documents at once, connections for the tables of the bundle",
            value=most,
            unit="connections",
            note=f"as {name}",
        )


def _is_engine(name: str) -> bool:
    """Return whether a connection is one of the engine, of PostgreSQL or of Redis: those of tables
    have the name of their schema.
    """
    return name.startswith(("headrace ", "headrace:"))


def memory(stage: Stage) -> Iterator[Finding]:
    """The most memory of a worker and its processes. The engine makes no difference."""
    if stage.engine != "sqlite":
        return
    one = 0.0
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        for name, paths in loads(Path(folder)):
            most = measured(WORKER, paths).megabytes
            bar, met = "", None
            if name == ONE:
                one = most
            elif name == HUNDRED:
                bar, met = f"≤ {MOST_MORE:g} of that of one document", most <= MOST_MORE * one
            elif name == LARGE:
                bar = f"≤ {MOST_TIMES} times the file more than for one document"
                met = most - one <= MOST_TIMES * LARGE_MEBIBYTES * 2**20 / 1e6
            yield Finding(
                scenario=NAME,
                engine=stage.engine,
                case=f"memory: {name}",
                value=most,
                unit="MB",
                reference=None if name == ONE else one,
                ratio=None if name == ONE else most / one,
                bar=bar,
                met=met,
                note="the worker with its four processes, at its peak" if name == ONE else "",
            )


PARTS: dict[str, Callable[[Stage], Iterator[Finding]]] = {
    "ingest-documents": documents,
    "ingest-hundred": hundred,
    "ingest-memory": memory,
}
