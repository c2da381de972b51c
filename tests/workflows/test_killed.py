"""A workflow whose workers are killed at random: each step is one job, and is done once."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.workflows.model import Workflow
from tests.conftest import ENGINES, Servers, store_url
from tests.crash import journal
from tests.crash.journal import Line
from tests.support.processes import Process, Processes, until
from tests.workflows import program

KILLS = 10
LEASE = 1.0


def step(name: str, *needs: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "task": "step", "needs": needs, "params": {"name": name}, **fields}


# A diamond (fetch, left, right, join), a condition, and a fan-out of 100.
STEPS = [
    step("fetch"),
    step("left", "fetch"),
    step("right", "fetch"),
    step("join", "left", "right"),
    step("never", "join", when="${steps.join.output.value} > 100"),
    step("always", "join", when="${steps.join.output.value} < 100"),
    {
        **step("each", "always", "never"),
        "each": "${steps.fetch.output.items}",
        "params": {"name": "each-${index}", "value": "${item}", "seconds": 0.01},
    },
    {"id": "total", "task": "total", "params": {"outputs": "${steps.each.output}"}},
]


class Scene:
    """A store, workers on it that are killed, and a log outside of the engine."""

    def __init__(self, url: str, folder: Path, processes: Processes) -> None:
        self.url = url
        self.processes = processes
        self.journal = folder / "journal.jsonl"
        self.app = program.register(headrace.App(url))
        self.numbers = itertools.count()

    def worker(self) -> Process:
        return self.processes.headrace(
            "worker",
            *("--app", "tests.workflows.program", "--name", f"worker{next(self.numbers)}"),
            *("--max-workers", "5"),
            HEADRACE_URL=self.url,
            HEADRACE_LEASE_SECONDS=str(LEASE),
            **{journal.VARIABLE: str(self.journal)},
        )

    def lines(self, event: str) -> list[Line]:
        return journal.read(self.journal, lambda line: line.event == event)


@pytest.fixture(params=ENGINES)
async def scene(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Scene]:
    with Processes(tmp_path) as processes:
        scene = Scene(store_url(request.param, servers, tmp_path), tmp_path, processes)
        async with scene.app:
            yield scene
            assert await scene.app.engine.audit() == []


@pytest.mark.timeout(180)
async def test_each_step_is_done_once_whoever_dies(scene: Scene) -> None:
    chance = random.Random(11)
    scene.app.workflows.add(msgspec.convert({"id": "w", "steps": STEPS}, Workflow))
    run = await scene.app.workflows.run("w")
    workers = [scene.worker(), scene.worker()]
    for _ in range(KILLS):
        seen = len(scene.lines("start"))
        over = chance.randint(1, 12)
        await until(
            lambda: len(scene.lines("start")) >= min(seen + over, 105),  # noqa: B023
            "another step",
            60,
        )
        victim = chance.randrange(2)
        workers[victim].kill()
        workers[victim] = scene.worker()

    async def ended() -> bool:
        return (await scene.app.get(run.id)).status.final

    await until(ended, "the end of the run", 60)
    job = await scene.app.get(run.id)
    assert (job.status, job.error) == (Status.COMPLETED, None)
    assert job.result == {"total": sum(range(1, 101))}
    view = await scene.app.workflows.look(job)
    assert {each.id: (each.status, each.jobs) for each in view.steps} == {
        **dict.fromkeys(("fetch", "left", "right", "join", "always", "total"), ("completed", 1)),
        "never": ("skipped", 0),
        "each": ("completed", 100),
    }
    # The judge is the log outside: one job for each step, however often it was begun.
    jobs = defaultdict(set)
    for line in scene.lines("start"):
        jobs[line.stage].add(line.job)
    assert {len(ids) for ids in jobs.values()} == {1}
    assert len(jobs) == 106
    page = await scene.app.list(JobFilter(parent=run.id), limit=500)
    assert {each.id for each in page.jobs} == {job_id for ids in jobs.values() for job_id in ids}
    # An attempt that was cut off had a reason: nothing began again after it was over.
    for stage, [job_id] in ((stage, [*ids]) for stage, ids in jobs.items()):
        starts = [line.at for line in scene.lines("start") if line.job == job_id]
        ends = [line.at for line in scene.lines("end") if line.job == job_id]
        assert len(starts) <= 1 + KILLS, stage
        assert len(ends) <= len(starts), stage
