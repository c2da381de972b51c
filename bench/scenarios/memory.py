"""What a worker takes while a hundred jobs run: memory and connections."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.figures import Finding
from bench.scenarios.stage import Stage

RUNNING = 100
RUN_SECONDS = 12.0
# The lease has a connection of its own, which is made when it is first renewed, after 5 s.
WATCH_SECONDS = 7.0
MOST_MB = 60.0
MOST_CONNECTIONS = 3


def memory(stage: Stage) -> Iterator[Finding]:
    """Both questions on one engine."""
    with stage.fresh():
        record = stage.recorder(RUNNING)
        stage.fill("wait", RUNNING, seconds=RUN_SECONDS)
        with stage.worker(RUNNING) as process:
            stage.until(record.all_started, process)
            end = time.monotonic() + WATCH_SECONDS
            size, connections = 0.0, 0
            while time.monotonic() < end:
                size = max(size, stage.arena.memory_mb(process))
                connections = max(connections, stage.arena.connections(process) or 0)
                time.sleep(0.2)
    yield Finding(
        scenario="memory",
        engine=stage.engine,
        case=f"{RUNNING} slots, {RUNNING} running",
        value=size,
        unit="MB",
        bar=f"< {MOST_MB:g} MB",
        met=size < MOST_MB,
    )
    yield Finding(
        scenario="memory",
        engine=stage.engine,
        case=f"connections, {RUNNING} running",
        value=connections,
        unit="connections",
        bar=f"≤ {MOST_CONNECTIONS}",
        met=connections <= MOST_CONNECTIONS,
        note="a file needs none" if stage.engine == "sqlite" else "",
    )
