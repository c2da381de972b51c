"""Workers that die at every point around a stage: no finished stage runs twice.

The suite kills a few dozen; `make kills` a thousand, in some minutes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter

import msgspec
import pytest

from headrace.model.durable.entries import STAGE
from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.conftest import ENGINES
from tests.crash import journal, stage_lives
from tests.crash.conftest import Scene
from tests.support.processes import ROOT

KILLS = int(os.environ.get("HEADRACE_TEST_KILLS", "60"))
"""How many in all, over the engines."""

LIVES = -(-KILLS // len(ENGINES))
# A life is long enough for about so many jobs.
JOBS_PER_LIFE = 3


@pytest.mark.timeout(300 + LIVES * 3)
async def test_no_finished_stage_runs_twice_wherever_its_worker_dies(scene: Scene) -> None:
    app = stage_lives.make_app(scene.url)
    async with app:
        task = app.tasks["staged"]
        jobs = await app.enqueue_many(task.job() for _ in range(round(LIVES * JOBS_PER_LIFE)))
        ends = await live_and_die(scene)
        assert ends == {"killed": LIVES, "lived on": 1}
        lines = scene.lines()
        effects = Counter((line.job, line.stage) for line in lines if line.event == "effect")
        begun: dict[tuple[str, str], int] = {}
        for line in lines:
            if line.event == "begun":
                begun[line.job, line.stage] = line.token
        repeated = 0
        for job in await scene.jobs(jobs):
            assert job.status is Status.COMPLETED, (job.status, job.error)
            children = (await app.list(JobFilter(parent=job.id), limit=100)).jobs
            assert len(children) == stage_lives.CHILDREN
            assert {child.status for child in children} == {Status.COMPLETED}
            tokens = []
            for each in (job, *children):
                kept = {entry.name: entry for entry in await app.engine.entries(each.id, STAGE)}
                assert list(kept) == (list(stage_lives.STAGES) if each is job else ["leaf"])
                for name, entry in kept.items():
                    # The last attempt that began the stage is the one that finished it …
                    assert begun[each.id, name] == entry.token
                    # … and what the engine kept is what was done outside.
                    assert msgspec.json.decode(entry.body)["value"] == entry.token
                    repeated += effects.pop((each.id, name)) - 1
                    tokens.append(entry.token)
            assert job.result == tokens[: len(stage_lives.STAGES)]
        assert not effects, "an effect of a stage that nobody knows"
        points = Counter(line.stage for line in lines if line.event == "died")
        print(
            f"{scene.app.engine.name}: {LIVES} kills, {len(jobs)} jobs, "
            f"{len(jobs) * (len(stage_lives.STAGES) + stage_lives.CHILDREN)} stages, "
            f"{repeated} effects repeated before their checkpoint, {dict(points)}"
        )


async def live_and_die(scene: Scene) -> dict[str, int]:
    """Run the program with many lives to its end."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.stage_lives"),
        *(scene.url, str(LIVES), "7"),
        cwd=ROOT,
        env=environment | {journal.VARIABLE: str(scene.journal)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    ends: dict[str, int] = msgspec.json.decode(output)
    return ends
