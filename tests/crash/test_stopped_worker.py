"""Workers that are asked to stop: they finish what runs and give the rest back unharmed."""

from __future__ import annotations

from headrace.model.status import Status
from tests.crash.conftest import Scene
from tests.support.processes import until


async def test_a_stop_under_load_spends_no_attempt_of_unstarted_jobs(scene: Scene) -> None:
    jobs = await scene.app.enqueue_many(
        scene.app.tasks["work"].job(seconds=0.01) for _ in range(600)
    )
    first = scene.worker("first", lease=600, slots=2)
    await scene.happened("end", 40)
    first.terminate()
    assert await first.ended() == 0, first.said
    started = scene.counts("start")
    assert started == scene.counts("end")
    left = await scene.jobs(jobs)
    for job in left:
        expected = (Status.COMPLETED, 1) if job.id in started else (Status.PENDING, 0)
        assert (job.status, job.attempt) == expected
    # The worker had claimed ahead: some of those that it never started were in its hands.
    assert any(job.token for job in left if job.status is Status.PENDING)
    assert await scene.app.engine.workers() == []

    scene.worker("second")
    await scene.all_over()
    assert {(job.status, job.attempt) for job in await scene.jobs(jobs)} == {(Status.COMPLETED, 1)}
    assert set(scene.counts("end").values()) == {1}


async def test_a_running_job_may_finish_within_the_grace_time(scene: Scene) -> None:
    running = await scene.app.enqueue("gated", {"gate": scene.gate})
    worker = scene.worker("worker")
    await scene.happened("start")
    worker.terminate()
    await until(lambda: "finishing running jobs" in worker.said, "the worker's answer")
    scene.open_gate(1)
    assert await worker.ended() == 0, worker.said
    [done] = await scene.jobs([running])
    assert (done.status, done.attempt, done.result) == (Status.COMPLETED, 1, 1)
