"""Workers that are killed without warning while they collect or run a chunk."""

from __future__ import annotations

import pytest

from headrace.model.status import Status
from tests.crash.conftest import SHORT, Scene

# Where a worker dies, and whether the half of a chunk that was complete then is recorded.
POINTS = {
    "after the claim": False,
    "at the start of a chunk": False,
    "in the middle of a chunk": True,
    "before settling": False,
    "after settling": True,
}


@pytest.mark.parametrize("point", POINTS)
async def test_every_job_of_a_chunk_has_one_outcome(scene: Scene, point: str) -> None:
    rows = [scene.app.tasks["chunked"].job(number=number) for number in range(25)]
    jobs = await scene.app.enqueue_many(rows)
    victim = scene.worker("victim", lease=SHORT, slots=1, die=point)
    assert await victim.ended() == -9, victim.said
    recorded = {line.job for line in scene.lines("settled")}
    assert bool(recorded) is POINTS[point]
    scene.worker("heir")
    await scene.all_over()
    await scene.happened("settled")
    for job in await scene.jobs(jobs):
        assert (job.status, job.result) == (Status.COMPLETED, job.token)
        assert len(scene.lines("settled", job.id)) <= 1
        assert scene.lines("refused", job.id) == []
        # What was recorded is not run again.
        ends = scene.lines("end", job.id)
        if job.id in recorded:
            assert (len(ends), job.attempt) == (1, 1)
        assert len(scene.lines("start", job.id)) <= 2
