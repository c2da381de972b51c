"""Runs of workflows on real engines: steps that fail, and runs that are begun again."""

from __future__ import annotations

import pytest

from headrace.errors import InvalidInput, JobConflict
from headrace.model.status import Status
from tests.workflows.scene import Scene, say


async def test_a_failed_step_fails_the_run_but_not_what_runs_beside_it(scene: Scene) -> None:
    scene.broken.add("bad")
    scene.workflow(
        {"id": "bad", "task": "fragile", "params": {"word": "bad"}},
        say("beside"),
        say("after", "bad", "beside"),
    )
    job = await scene.run()
    assert job.status is Status.FAILED
    assert job.error is not None
    assert 'step "bad" failed' in job.error
    assert "bad is broken" in job.error
    assert await scene.statuses(job) == {
        "bad": "failed",
        "beside": "completed",
        "after": "cancelled",
    }
    assert job.attempt == 1


async def test_a_run_goes_on_without_a_step_that_may_fail(scene: Scene) -> None:
    scene.broken.add("b")
    scene.workflow(
        {"id": "try", "task": "fragile", "each": ["a", "b", "c"], "params": {"word": "${item}"},
         "on_failure": "continue"},
        say("after", "try"),
        output={"got": "${steps.try.output}", "status": "${steps.try.status}"},
    )  # fmt: skip
    job = await scene.run()
    assert job.status is Status.COMPLETED
    assert job.result == {"got": ["A", None, "C"], "status": "failed"}
    view = await scene.app.workflows.look(job)
    assert view.steps[0].error is not None
    assert view.steps[0].error.startswith("1 of 3: ")


async def test_a_run_is_begun_again_where_it_failed(scene: Scene) -> None:
    scene.broken.add("bad")
    scene.workflow(
        say("first"),
        {"id": "bad", "task": "fragile", "params": {"word": "bad"}, "needs": ["first"]},
        say("last", "bad"),
    )
    job = await scene.run()
    assert job.status is Status.FAILED
    scene.broken.clear()
    assert await scene.app.workflows.retry(job) == ["bad", "last"]
    await scene.work()
    job = await scene.app.get(job.id)
    assert job.status is Status.COMPLETED
    assert scene.done == ["first", "bad", "bad", "last"]


async def test_a_plain_retry_of_a_run_goes_on_where_it_failed(scene: Scene) -> None:
    scene.broken.add("bad")
    scene.workflow(say("first"), {"id": "bad", "task": "fragile", "params": {"word": "bad"}})
    job = await scene.run()
    scene.broken.clear()
    assert await scene.app.rerun([job]) == [job.id]
    await scene.work()
    assert (await scene.app.get(job.id)).status is Status.COMPLETED
    await scene.app.retry(job.id, from_stage="bad")
    await scene.work()
    assert sorted(scene.done) == ["bad", "bad", "bad", "first"]


async def test_a_run_is_begun_again_from_a_step(scene: Scene) -> None:
    scene.workflow(say("a"), say("b", "a"), say("c", "b"), say("other"))
    job = await scene.run()
    scene.done.clear()
    assert await scene.app.workflows.retry(job, "b") == ["b", "c"]
    await scene.work()
    assert scene.done == ["b", "c"]
    assert (await scene.app.get(job.id)).status is Status.COMPLETED
    with pytest.raises(InvalidInput, match="has no step"):
        await scene.app.workflows.retry(job, "nowhere")


async def test_a_run_that_is_not_over_is_not_begun_again(scene: Scene) -> None:
    scene.workflow(say("a"))
    job = await scene.app.workflows.run("w")
    with pytest.raises(JobConflict):
        await scene.app.workflows.retry(job)
