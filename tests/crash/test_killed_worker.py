"""Workers that are killed without warning: nothing is lost, nothing counts twice."""

from __future__ import annotations

import pytest

from headrace.model.status import Status
from tests.crash.conftest import SHORT, Scene
from tests.support.processes import until

POINTS = [
    "before the claim",
    "after the claim",
    "in the handler",
    "before settling",
    "after settling",
]


@pytest.mark.parametrize("point", POINTS)
async def test_every_job_completes_once_wherever_its_worker_dies(scene: Scene, point: str) -> None:
    plain = [scene.app.tasks["work"].job() for _ in range(3)]
    laned = [scene.app.tasks["in_lane"].job(lane="a") for _ in range(3)]
    jobs = await scene.app.enqueue_many([*plain, *laned])
    victim = scene.worker("victim", lease=SHORT, die=point)
    assert await victim.ended() == -9, victim.said
    scene.worker("heir")
    await scene.all_over()
    await scene.happened("settled")
    for job in await scene.jobs(jobs):
        assert (job.status, job.result) == (Status.COMPLETED, job.token)
        ends = scene.lines("end", job.id)
        # A handler whose end nobody could record runs again; no other does.
        assert len(ends) == 1 or (point == "before settling" and ends[0].pid == victim.pid)
        assert len(scene.lines("settled", job.id)) <= 1
        assert scene.lines("refused", job.id) == []


async def test_a_job_that_kills_its_workers_fails_after_its_attempts(scene: Scene) -> None:
    job = await scene.app.tasks["deadly"].enqueue()
    for _ in range(3):
        worker = scene.worker("steady", lease=60)
        assert await worker.ended() == -9, worker.said
    scene.worker("steady", lease=60)
    await scene.all_over()
    [job] = await scene.jobs([job])
    assert (job.status, job.attempt, job.error_type) == (Status.FAILED, 3, "WorkerLost")
    assert [(entry.attempt, entry.outcome, entry.worker) for entry in job.attempts] == [
        (1, "retry", "steady"),
        (2, "retry", "steady"),
        (3, "failed", "steady"),
    ]
    assert all("was lost" in entry.failure.message for entry in job.attempts if entry.failure)
    assert len(scene.lines("start", job.id)) == 3


async def test_a_job_that_must_not_be_repeated_ends_as_interrupted(scene: Scene) -> None:
    job = await scene.app.enqueue("fragile", {"gate": scene.gate})
    victim = scene.worker("victim", lease=SHORT)
    await scene.happened("start")
    victim.kill()
    scene.worker("heir")
    await scene.all_over()
    [job] = await scene.jobs([job])
    assert (job.status, job.attempt, job.error_type) == (Status.FAILED, 1, "interrupted")
    assert len(scene.lines("start")) == 1


async def test_a_restart_under_the_same_name_takes_jobs_back_at_once(scene: Scene) -> None:
    jobs = [await scene.app.enqueue("gated", {"gate": scene.gate}) for _ in range(3)]
    first = scene.worker("steady", lease=600)
    await scene.happened("start", 3)
    first.kill()
    scene.open_gate(2)
    scene.worker("steady", lease=600)
    await scene.all_over()
    for job in await scene.jobs(jobs):
        assert (job.status, job.attempt, job.result) == (Status.COMPLETED, 2, 2)


@pytest.mark.parametrize(
    ("point", "runs"),
    [
        ("in stage two", {"one": 1, "two": 2, "three": 1}),
        ("after stage one", {"one": 1, "two": 1, "three": 1}),
        ("after stage three", {"one": 1, "two": 1, "three": 1}),
    ],
)
async def test_a_finished_stage_is_never_run_again(
    scene: Scene, point: str, runs: dict[str, int]
) -> None:
    job = await scene.app.tasks["staged"].enqueue()
    victim = scene.worker("steady", die=point)
    assert await victim.ended() == -9, victim.said
    scene.worker("steady")
    assert await scene.app.result(job.id, timeout=30) == ["one", "two", "three"]
    begun = [line.stage for line in scene.lines("stage")]
    assert {name: begun.count(name) for name in runs} == runs
    ended = [line.stage for line in scene.lines("staged")]
    assert ended == ["one", "two", "three"]


async def test_a_worker_that_starts_before_its_heir_dies_is_not_waited_for(scene: Scene) -> None:
    """Two workers at once: the one that lives takes over within the lease time."""
    scene.worker("heir", slots=1)
    jobs = [await scene.app.enqueue("gated", {"gate": scene.gate}) for _ in range(2)]
    victim = scene.worker("victim", lease=SHORT, slots=1)
    await until(lambda: victim.pid in {line.pid for line in scene.lines("start")}, "a start")
    victim.kill()
    scene.open_gate(1)
    scene.open_gate(2)
    await scene.all_over()
    assert sorted(job.attempt for job in await scene.jobs(jobs)) == [1, 2]
