"""What one server process carries: requests beside a bare route, and open streams of events."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator

from bench.figures import Finding
from bench.scenarios.stage import Stage

PROGRAM = "bench.scenarios.http_program"
RUNS = 2
CONNECTIONS = 64
REQUESTS = 10_000
SHARE = 0.5
STREAMS = 1_000
MOST_MB = 100.0
VERBS = {"post": "POST /jobs", "get": "GET /jobs/{id}"}


def http(stage: Stage) -> Iterator[Finding]:
    """Both questions on one engine."""
    ours: dict[str, float] = {}
    bare: dict[str, float] = {}
    # In turns, so that a busy moment of the machine does not fall on all runs of one of them.
    for _ in range(stage.runs(RUNS)):
        for kind, best in (("bare", bare), ("ours", ours)):
            for verb, rate in _rates(stage, kind).items():
                best[verb] = max(best.get(verb, 0.0), rate)
    for verb, words in VERBS.items():
        ratio = ours[verb] / bare[verb]
        yield Finding(
            scenario="http",
            engine=stage.engine,
            case=f"{words}, {CONNECTIONS} connections",
            value=ours[verb],
            unit="requests/s",
            reference=bare[verb],
            ratio=ratio,
            bar=f"≥ {SHARE:.0%} of a bare route",
            met=ratio >= SHARE,
            note="with a key; the bare route has none, and stores nothing",
        )
    yield from _streams(stage)


def _rates(stage: Stage, kind: str) -> dict[str, float]:
    with stage.fresh(), _serving(stage, kind):
        count = max(stage.jobs(REQUESTS), 2_000)
        options = ("--connections", CONNECTIONS, "--count", count)
        return stage.arena.call(PROGRAM, "load", *options)


def _streams(stage: Stage) -> Iterator[Finding]:
    peak = 0.0
    answer: dict[str, int] = {}
    with stage.fresh(), _serving(stage, "ours") as server:
        following = threading.Thread(
            target=lambda: answer.update(stage.arena.call(PROGRAM, "follow"))
        )
        following.start()
        ready = stage.arena.folder / "ready"
        stage.until(lambda: ready.exists() or not following.is_alive(), server)
        with stage.arena.process(PROGRAM, "work"):
            while following.is_alive():
                peak = max(peak, stage.arena.memory_mb(server))
                following.join(0.1)
    case = f"{STREAMS:,} open streams of events"
    yield Finding(
        scenario="http",
        engine=stage.engine,
        case=case,
        value=peak,
        unit="MB",
        bar=f"< {MOST_MB:g} MB",
        met=peak < MOST_MB,
        note="the whole server process, at its peak",
    )
    missed = STREAMS - answer.get("whole", 0)
    yield Finding(
        scenario="http",
        engine=stage.engine,
        case=f"{case}, all jobs run",
        value=missed,
        unit="streams that missed a change",
        bar="none",
        met=missed == 0,
    )


@contextlib.contextmanager
def _serving(stage: Stage, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    place = stage.arena.folder / "place"
    with stage.arena.process(PROGRAM, kind) as process:
        stage.until(place.exists, process)
        yield process
