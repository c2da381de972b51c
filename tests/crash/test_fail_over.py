"""The primary is killed under load, and its replica is promoted: what is lost, what runs twice.

HEADRACE_TEST_FAIL_OVERS=10 repeats it that often for each kind of replica, and prints the counts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from headrace.errors import EngineUnavailable
from headrace.model.status import Status
from tests.crash.conftest import Scene
from tests.support.processes import Processes, until
from tests.support.replicas import Pair

ROUNDS = int(os.environ.get("HEADRACE_TEST_FAIL_OVERS", "1"))
LEASE = 10.0
PRODUCERS = 5
# Jobs that a worker has claimed before are done by then: they take 0.01 s.
IN_HAND = 0.5


@pytest.mark.timeout(60 + 60 * ROUNDS)
@pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])
async def test_workers_and_producers_go_on_with_the_promoted_replica(
    kind: str, tmp_path: Path
) -> None:
    totals: Counter[str] = Counter()
    slowest = 0.0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        pair = Pair(synchronous=kind == "synchronous")
        try:
            await pair.start()
            with Processes(folder) as processes:
                scene = Scene(pair.url, folder, processes)
                async with scene.app:
                    counts, seconds = await fail_over(scene, pair)
        finally:
            pair.destroy()
        totals += counts
        slowest = max(slowest, seconds)
        if kind == "synchronous":
            assert counts["lost"] == 0, dict(counts)
    shown = ("acknowledged", "lost", "run", "run twice", "never run")
    told = ", ".join(f"{name} {totals[name]}" for name in shown)
    print(f"\n{kind}: {ROUNDS} fail-overs; {told}; slowest worker back after {slowest:.1f} s")
    assert totals["never run"] == 0
    assert slowest < LEASE


async def fail_over(scene: Scene, pair: Pair) -> tuple[Counter[str], float]:
    """Kill the primary in the middle of work. Return the counts, and when all workers were back."""
    workers = [scene.worker(name, lease=LEASE, slots=4) for name in ("one", "two")]
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def produce() -> None:
        while not enough.is_set():
            try:
                acknowledged.append((await scene.app.tasks["work"].enqueue(seconds=0.01)).id)
            except EngineUnavailable:
                await asyncio.sleep(0.05)  # as a caller would, before it tries again

    producers = [asyncio.create_task(produce()) for _ in range(PRODUCERS)]
    await scene.happened("end", 50)
    killed = time.monotonic()
    await asyncio.to_thread(pair.primary.kill)
    await pair.promote()

    def first_starts() -> dict[int, float]:
        """When each worker began its first job that the old primary has not given it."""
        later = [line for line in scene.lines("start") if line.at > killed + IN_HAND]
        return {line.pid: line.at for line in reversed(later)}

    pids = {worker.pid for worker in workers}
    await until(lambda: pids <= first_starts().keys(), "work of both workers on the replica")
    seconds = max(first_starts()[pid] for pid in pids)
    goal = len(acknowledged) + 50
    await until(lambda: len(acknowledged) >= goal, "further jobs")
    enough.set()
    await asyncio.gather(*producers)
    await scene.all_over()
    found = {job.id: job for job in await scene.app.engine.get(acknowledged)}
    assert {job.status for job in found.values()} == {Status.COMPLETED}
    assert await scene.app.engine.audit() == []
    for worker in workers:
        worker.terminate()
        assert await worker.ended() == 0, worker.said
    runs = Counter(line.job for line in scene.lines("end"))
    counts = Counter(
        {
            "acknowledged": len(acknowledged),
            "lost": len(set(acknowledged) - found.keys()),
            "run": len(runs),
            "run twice": sum(count > 1 for count in runs.values()),
            # Of those that were not lost.
            "never run": sum(job_id not in runs for job_id in found),
        }
    )
    return counts, seconds - killed
