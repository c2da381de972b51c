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
    assert await scene.app.engine.workers() == []

    scene.worker("second")
    await scene.all_over()
    assert {(job.status, job.attempt) for job in await scene.jobs(jobs)} == {(Status.COMPLETED, 1)}
    assert set(scene.counts("end").values()) == {1}


async def test_a_running_job_may_finish_within_the_grace_time(scene: Scene) -> None:
    # Short jobs let the worker claim ahead; the long ones behind them then wait in its hands.
    await scene.app.enqueue_many(scene.app.tasks["work"].job() for _ in range(300))
    long = await scene.app.enqueue_many(
        scene.app.tasks["gated"].job(gate=scene.gate) for _ in range(50)
    )
    worker = scene.worker("worker", lease=600, slots=2)
    await scene.happened("start", 302)
    worker.terminate()

    async def only_two_run() -> bool:
        [queue] = await scene.app.engine.queues()
        return queue.running == 2

    await until(only_two_run, "the return of unstarted jobs")
    assert worker.code is None
    scene.open_gate(1)
    assert await worker.ended() == 0, worker.said
    started = scene.counts("start")
    jobs = await scene.jobs(long)
    done = [job for job in jobs if job.id in started]
    assert [(job.status, job.attempt, job.result) for job in done] == [(Status.COMPLETED, 1, 1)] * 2
    left = [job for job in jobs if job.id not in started]
    assert {(job.status, job.attempt) for job in left} == {(Status.PENDING, 0)}
    assert any(job.token for job in left), "the worker had claimed nothing ahead"
