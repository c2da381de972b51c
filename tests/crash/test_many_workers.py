"""Several workers at once, with and without deaths: judged by the log outside the engine."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict

import pytest

from headrace.model.job import Job
from headrace.model.status import Status
from tests.crash.conftest import Scene
from tests.crash.journal import Line
from tests.support.processes import Process, until

LANES = 20
JOBS_PER_LANE = 15
KILLS = 12


async def test_racing_workers_run_each_job_once(scene: Scene) -> None:
    for name in ("one", "two", "three"):
        scene.worker(name, lease=30)
    await scene.has_workers(3)
    jobs = await scene.app.enqueue_many(scene.app.tasks["work"].job() for _ in range(4_000))
    await scene.all_over()
    assert {job.status for job in await scene.jobs(jobs)} == {Status.COMPLETED}
    ids = {job.id for job in jobs}
    # A worker writes its line a moment after the engine has taken the result.
    await scene.happened("settled", len(jobs))
    for event in ("start", "end", "settled"):
        counts = scene.counts(event)
        assert counts.keys() == ids
        assert set(counts.values()) == {1}
    assert len({line.pid for line in scene.lines("end")}) == 3


@pytest.mark.timeout(180)
async def test_lanes_keep_order_while_workers_are_killed(scene: Scene) -> None:
    chance = random.Random(7)
    lanes = [f"lane{number}" for number in range(LANES)]
    jobs: list[Job] = []

    async def enqueue_round() -> None:
        new = (scene.app.tasks["in_lane"].job(lane=lane, seconds=0.1) for lane in lanes)
        jobs.extend(await scene.app.enqueue_many(new))

    for _ in range(JOBS_PER_LANE - KILLS):
        await enqueue_round()
    # Slots for all lanes are there only if all three workers take part.
    workers = [scene.worker(f"worker{number}", lease=2, slots=7) for number in range(3)]
    started = itertools.count(3)
    for _ in range(KILLS):
        await enqueue_round()
        wanted = len(scene.lines("start")) + chance.randint(1, 15)
        await scene.happened("start", wanted)
        # Kill one that has something to lose.
        busy = await until(lambda: [w for w in workers if at_work(scene, w)], "a job at work")
        place = workers.index(chance.choice(busy))
        workers[place].kill()
        # Under its old name it takes its jobs back at once, under a new one others have to wait.
        name = f"worker{place}" if chance.random() < 0.5 else f"worker{next(started)}"
        workers[place] = scene.worker(name, lease=2, slots=7)
    await scene.all_over(90)
    assert {job.status for job in await scene.jobs(jobs)} == {Status.COMPLETED}
    assert set(scene.counts("settled").values()) == {1}
    by_lane: dict[str, list[str]] = defaultdict(list)
    for job in jobs:
        by_lane[job.lane or ""].append(job.id)
    for lane, expected in by_lane.items():
        ends = [line.job for line in scene.lines("end") if line.lane == lane]
        assert list(dict.fromkeys(ends)) == expected, f"{lane} is out of order"
    assert overlaps(scene) == []


def at_work(scene: Scene, worker: Process) -> bool:
    """Whether a job has begun in this process and not ended."""
    mine = [line for line in scene.lines() if line.pid == worker.pid]
    ended = {(line.job, line.token) for line in mine if line.event == "end"}
    return any(line.event == "start" and (line.job, line.token) not in ended for line in mine)


def overlaps(scene: Scene) -> list[tuple[Line, Line]]:
    """Attempts of one lane that ran at the same time. One that never ended ran until its process
    was killed. A worker that lost its lease for lack of processor time has no promise to keep.
    """
    killed = {process.pid: process.killed_at for process in scene.processes.started}
    excused = {each.pid for each in scene.processes.started if "lost its lease" in each.said}
    ends = {(line.job, line.token): line.at for line in scene.lines("end")}
    spans: dict[str, list[tuple[float, float, Line]]] = defaultdict(list)
    for line in scene.lines("start"):
        if line.pid in excused:
            continue
        until_then = ends.get((line.job, line.token), killed[line.pid])
        assert until_then is not None, f"{line} has no end, and nobody killed it"
        spans[line.lane or ""].append((line.at, until_then, line))
    found = []
    for spans_of_lane in spans.values():
        ordered = sorted(spans_of_lane, key=lambda span: span[0])
        found += [(a[2], b[2]) for a, b in itertools.pairwise(ordered) if b[0] < a[1]]
    return found
