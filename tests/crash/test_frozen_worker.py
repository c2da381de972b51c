"""Workers that hang past their lease: their late writes count for nothing, and they recover."""

from __future__ import annotations

import pytest

from headrace.model.status import Status
from tests.crash.conftest import SHORT, Scene
from tests.support.processes import Process, until


async def freeze(scene: Scene, sleeper: Process, where: str) -> None:
    """Stop a worker in its first attempt: in the handler, or with the result in hand, about to
    record it.
    """
    await scene.happened("start")
    if where == "before settling":
        scene.open_gate(1)
        await scene.happened("held")
    await scene.freeze(sleeper)


async def goes_on(scene: Scene, sleeper: Process, heir: Process) -> None:
    """The worker that had been frozen has a lease again and works."""
    await until(lambda: "has registered again" in sleeper.said, "a new registration")
    heir.terminate()
    assert await heir.ended() == 0
    another = await scene.app.enqueue("gated", {"gate": scene.gate})
    assert await scene.app.result(another.id, timeout=30)
    assert scene.lines("end", another.id)[-1].pid == sleeper.pid


@pytest.mark.parametrize("where", ["in the handler", "before settling"])
async def test_a_late_finish_is_refused_and_the_worker_goes_on(scene: Scene, where: str) -> None:
    job = await scene.app.enqueue("gated", {"gate": scene.gate})
    sleeper = scene.worker("sleeper", lease=SHORT, hold=where)
    await freeze(scene, sleeper, where)
    heir = scene.worker("heir")
    scene.open_gate(2)
    assert await scene.app.result(job.id, timeout=30) == 2
    [before] = await scene.jobs([job])
    assert (before.status, before.attempt, before.worker) == (Status.COMPLETED, 2, "heir")
    scene.open_gate(1)
    scene.release()
    sleeper.thaw()
    if where == "before settling":
        assert [line.token for line in await scene.happened("refused")] == [1]
    await goes_on(scene, sleeper, heir)
    assert await scene.jobs([job]) == [before]
    assert [line.token for line in scene.lines("settled", job.id)] == [2]


async def test_a_late_finish_is_refused_while_the_job_runs_elsewhere(scene: Scene) -> None:
    """The job is running, but under another token: only that tells the two attempts apart."""
    job = await scene.app.enqueue("gated", {"gate": scene.gate})
    sleeper = scene.worker("sleeper", lease=SHORT, hold="before settling")
    await freeze(scene, sleeper, "before settling")
    heir = scene.worker("heir")
    await scene.happened("start", 2)
    scene.release()
    sleeper.thaw()
    assert [line.token for line in await scene.happened("refused")] == [1]
    [running] = await scene.jobs([job])
    assert (running.status, running.attempt, running.worker) == (Status.RUNNING, 2, "heir")
    scene.open_gate(2)
    assert await scene.app.result(job.id, timeout=30) == 2
    await goes_on(scene, sleeper, heir)


async def test_what_a_frozen_worker_had_not_started_is_run_elsewhere(scene: Scene) -> None:
    """All that a frozen worker has claimed is taken over, also what no slot has begun."""
    jobs = await scene.app.enqueue_many(scene.app.tasks["work"].job() for _ in range(100))
    sleeper = scene.worker("sleeper", lease=SHORT, hold="after the claim")
    await scene.happened("held")
    await scene.freeze(sleeper)
    held = [job for job in await scene.jobs(jobs) if job.status is Status.RUNNING]
    assert held
    heir = scene.worker("heir")
    await scene.all_over()
    before = await scene.jobs(jobs)
    assert {job.status for job in before} == {Status.COMPLETED}
    assert {line.pid for line in scene.lines("end")} == {heir.pid}
    scene.release()
    sleeper.thaw()
    await until(lambda: "has registered again" in sleeper.said, "a new registration")
    assert await scene.jobs(jobs) == before
