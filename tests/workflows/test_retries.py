"""Retries of runs and of their steps, by hand and in bulk: a step is done once for each request."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace import JobFilter, JobOrchestrator, job_tree
from headrace.admin.bulk import BulkRecord
from headrace.admin.bulk_runner import BulkRunner
from headrace.errors import JobConflict
from headrace.model.status import Status
from headrace.workflows import retry as retries
from tests.server.conftest import client_of
from tests.support.verbs import a_worker, claim, complete
from tests.workflows.scene import Scene, say

FAILED = JobFilter(statuses=(Status.FAILED,))
CHARGE = {"id": "charge", "task": "fragile", "params": {"word": "charge"}}


async def foreground(scene: Scene) -> None:
    await scene.app.bulk("retry", FAILED)


async def background(scene: Scene) -> None:
    async def tell(bulk_id: str, record: BulkRecord) -> None: ...

    made = await scene.app.start_bulk("retry", FAILED)
    # One job at a time, so that step and run come in different batches.
    await BulkRunner(scene.app, tell, lease=30.0, batch=1).tick()
    assert (await scene.app.bulk_action(made.id)).state == "finished"


async def over_http(scene: Scene) -> None:
    async with client_of(scene.app) as client:
        body = {"action": "retry", "filter": {"status": ["failed"]}}
        assert (await client.post("/jobs/bulk", json=body)).status_code == 200


async def one_by_one(scene: Scene) -> None:
    for job in (await scene.app.list(FAILED)).jobs:
        try:
            await scene.app.retry(job.id)
        except JobConflict:
            continue


async def selected(scene: Scene) -> None:
    await scene.app.rerun((await scene.app.list(FAILED)).jobs)


def at_once(scene: Scene, verb: str) -> Callable[[Any], Awaitable[list[str]]]:
    real = getattr(scene.app.engine, verb)

    async def followed_by_work(given: Any) -> list[str]:
        moved: list[str] = await real(given)
        if moved:
            await scene.work()
        return moved

    return followed_by_work


WAYS = [foreground, background, over_http, one_by_one, selected]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_step_and_its_run_retried_together_do_it_once(
    scene: Scene, way: Callable[[Scene], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are fast: what is run again has been run before the next is looked at."""
    for verb in ("rerun", "rerun_unchanged"):
        monkeypatch.setattr(scene.app.engine, verb, at_once(scene, verb))
    scene.broken.add("charge")
    scene.workflow(CHARGE, say("mail", "charge"))
    runs = [await scene.app.workflows.run("w") for _ in range(3)]
    await scene.work()
    assert scene.done == ["charge"] * 3
    scene.broken.clear()
    await way(scene)
    await scene.work()
    assert Counter(scene.done) == {"charge": 6, "mail": 3}
    assert {(await scene.app.get(run.id)).status for run in runs} == {Status.COMPLETED}
    # Nothing is left that another such request would do again.
    await way(scene)
    await scene.work()
    assert Counter(scene.done) == {"charge": 6, "mail": 3}


async def test_a_retried_step_takes_its_run_with_it(scene: Scene) -> None:
    scene.broken.add("charge")
    scene.workflow(CHARGE, say("mail", "charge"))
    run = await scene.run()
    [step] = (await scene.app.list(JobFilter(parent=run.id))).jobs
    scene.broken.clear()
    assert (await scene.app.retry(step.id)).status is Status.PENDING
    await scene.work()
    assert scene.done == ["charge", "charge", "mail"]
    assert (await scene.app.get(run.id)).result == {"mail": {"word": "mail", "length": 4}}
    assert (await scene.app.get(step.id)).status is Status.COMPLETED


async def test_items_that_completed_are_not_done_again(scene: Scene) -> None:
    scene.broken |= {"b", "d"}
    scene.workflow(
        {"id": "all", "task": "fragile", "each": ["a", "b", "c", "d"],
         "params": {"word": "${item}"}},
        say("end", "all"),
        output="${steps.all.output}",
    )  # fmt: skip
    run = await scene.run()
    assert run.error is not None
    assert "2 of 4" in run.error
    scene.broken = {"d"}
    await scene.app.workflows.retry(run)
    await scene.work()
    scene.broken.clear()
    await scene.app.workflows.retry(await scene.app.get(run.id))
    await scene.work()
    assert (await scene.app.get(run.id)).result == ["A", "B", "C", "D"]
    assert Counter(scene.done) == {"a": 1, "b": 2, "c": 1, "d": 3, "end": 1}


async def test_what_completed_beside_a_skipped_step_is_not_done_again(scene: Scene) -> None:
    scene.broken.add("charge")
    scene.workflow(
        say("never", when="false"),
        say("beside"),
        say("join", "never", "beside"),
        CHARGE | {"needs": ["join"]},
    )
    run = await scene.run()
    scene.broken.clear()
    assert await scene.app.workflows.retry(run) == ["charge"]
    await scene.work()
    assert Counter(scene.done) == {"beside": 1, "join": 1, "charge": 2}


async def test_a_step_that_may_fail_is_retried_alone(scene: Scene) -> None:
    scene.broken.add("charge")
    scene.workflow(CHARGE | {"on_failure": "continue"}, say("mail", "charge"))
    run = await scene.run()
    assert run.status is Status.COMPLETED
    scene.broken.clear()
    await foreground(scene)
    await scene.work()
    assert Counter(scene.done) == {"charge": 2, "mail": 1}
    # Asked for by name: the step has completed meanwhile, what follows is done with its output.
    await scene.app.workflows.retry(run)
    await scene.work()
    assert Counter(scene.done) == {"charge": 2, "mail": 2}
    assert await scene.statuses(run) == {"charge": "completed", "mail": "completed"}


async def test_a_job_whose_place_another_has_taken_is_left_alone(scene: Scene) -> None:
    scene.broken.add("charge")
    scene.workflow(CHARGE)
    run = await scene.run()
    [old] = (await scene.app.list(JobFilter(parent=run.id))).jobs
    scene.broken.clear()
    await scene.app.workflows.retry(run, "charge")
    await scene.work()
    assert (await scene.app.get(run.id)).status is Status.COMPLETED
    assert (await scene.app.get(old.id)).status is Status.FAILED
    with pytest.raises(JobConflict, match="another has taken its place"):
        await scene.app.retry(old.id)
    with pytest.raises(JobConflict, match="another has taken its place"):
        await scene.app.retry(old.id, from_stage="any")
    await foreground(scene)
    await scene.work()
    assert scene.done == ["charge", "charge"]


async def test_a_failed_step_of_a_run_that_goes_on_is_left_to_it(scene: Scene) -> None:
    scene.broken.add("charge")
    scene.workflow(CHARGE, say("long", queue="held"))
    await scene.app.pause("held")
    run = await scene.run()
    [step] = (await scene.app.list(FAILED)).jobs
    with pytest.raises(JobConflict, match=f'the step "charge" of run {run.id}, which is scheduled'):
        await scene.app.retry(step.id)
    await foreground(scene)
    assert (await scene.app.get(step.id)).status is Status.FAILED


async def test_a_key_for_some_queues_does_not_reach_others_through_a_run(scene: Scene) -> None:
    scene.broken.add("charge")
    scene.workflow(CHARGE | {"queue": "money"}, queue="runs")
    run = await scene.run()
    jobs = (await scene.app.list(FAILED)).jobs
    assert await scene.app.rerun(jobs, queues=["money"]) == []
    [step] = [job for job in jobs if job.id != run.id]
    with pytest.raises(JobConflict, match="uses other queues as well"):
        await scene.app.workflows.check_queues(step, ["money"])
    assert set(await scene.app.rerun(jobs, queues=["money", "runs"])) == {run.id, step.id}


async def test_a_cancelled_run_goes_on_with_what_was_not_done(scene: Scene) -> None:
    items = ["a", "b", "c"]
    scene.workflow(
        {"id": "all", "task": "say", "each": items, "queue": "held", "params": {"word": "${item}"}}
    )
    run = await scene.app.workflows.run("w")
    await JobOrchestrator(scene.app, queues=["default"]).run_until_idle()
    worker = await a_worker(scene.app.engine)
    [done] = await claim(scene.app.engine, worker, 1, ["held"])
    await scene.app.cancel(run.id)
    job = await scene.app.get(run.id)
    # One of them has not stopped yet: nothing is changed.
    before = await scene.app.engine.entries(run.id)
    with pytest.raises(JobConflict, match="was asked to stop and has not ended yet"):
        await scene.app.workflows.retry(job)
    assert await scene.app.engine.entries(run.id) == before
    assert (await scene.app.get(run.id)).status is Status.CANCELLED
    assert await complete(scene.app.engine, done)
    await scene.app.workflows.retry(job)
    await scene.work()
    assert (await scene.app.get(run.id)).status is Status.COMPLETED
    assert len(scene.done) == 2


# -- two at once -------------------------------------------------------------------------------


async def test_of_retries_at_once_one_is_accepted_and_the_others_change_nothing(
    scene: Scene,
) -> None:
    scene.broken.add("charge")
    scene.workflow(say("first"), CHARGE | {"needs": ["first"]}, say("mail", "charge"))
    run = await scene.run()
    scene.broken.clear()
    for asked in ("charge", None, "first"):
        answers = await asyncio.gather(
            *(scene.app.workflows.retry(run, asked) for _ in range(4)), return_exceptions=True
        )
        refused = [each for each in answers if isinstance(each, BaseException)]
        assert [type(each) for each in refused] == [JobConflict] * 3
        await scene.work()
        run = await scene.app.get(run.id)
        assert (run.status, run.error) == (Status.COMPLETED, None)
        jobs = (await scene.app.list(JobFilter(parent=run.id))).jobs
        assert not [job.id for job in jobs if job.status is Status.CANCELLED]
    assert Counter(scene.done) == {"first": 2, "charge": 3, "mail": 2}


@pytest.mark.parametrize("asked", ["all", None])
async def test_a_refused_retry_does_not_touch_the_jobs_of_the_accepted_one(
    scene: Scene, asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.broken.add("b")
    scene.workflow(
        {"id": "all", "task": "fragile", "each": ["a", "b"], "params": {"word": "${item}"}}
    )
    run = await scene.run()
    scene.broken.clear()
    real = job_tree.rerun_without
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def late(*given: Any) -> bool:
        entered.set()
        await go_on.wait()
        return await real(*given)

    with monkeypatch.context() as patched:
        patched.setattr(retries, "rerun_without", late)
        refused = asyncio.create_task(scene.app.workflows.retry(run, asked))
        await entered.wait()
    # It has read everything. Meanwhile another is accepted, and its jobs are there.
    await scene.app.workflows.retry(run, "all")
    await JobOrchestrator(scene.app, queues=["default"], max_workers=1).run_until_idle()
    done = Counter(scene.done)
    entries = await scene.app.engine.entries(run.id)
    go_on.set()
    with pytest.raises(JobConflict, match="restarted by another caller"):
        await refused
    await scene.work()
    assert (await scene.app.get(run.id)).status is Status.COMPLETED
    assert Counter(scene.done) == done == {"a": 2, "b": 2}
    assert await scene.app.engine.entries(run.id) == entries
    jobs = (await scene.app.list(JobFilter(parent=run.id))).jobs
    assert not [job.id for job in jobs if job.status is Status.CANCELLED]


async def test_a_retry_that_is_cut_short_is_completed_by_the_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.broken.add("b")
    scene.workflow(
        {"id": "all", "task": "fragile", "each": ["a", "b"], "params": {"word": "${item}"}}
    )
    run = await scene.run()
    scene.broken.clear()

    async def died(*_: Any) -> bool:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(job_tree, "complete_rerun", died)
        with pytest.raises(RuntimeError):
            await scene.app.workflows.retry(run)
    await scene.work()
    assert (await scene.app.get(run.id)).result == {"all": ["A", "B"]}
    assert Counter(scene.done) == {"a": 1, "b": 2}
    assert await scene.app.engine.record_list(job_tree.REPLACED) == []


async def test_a_run_that_is_cancelled_before_its_retry_was_completed_does_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.broken.add("charge")
    scene.workflow(CHARGE)
    run = await scene.run()

    async def died(*_: Any) -> bool:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(job_tree, "complete_rerun", died)
        with pytest.raises(RuntimeError):
            await scene.app.workflows.retry(run)
    await scene.app.cancel(run.id)
    await job_tree.complete_rerun(scene.app.engine, run.id)
    await scene.work()
    assert scene.done == ["charge"]
    assert await scene.app.engine.record_list(job_tree.REPLACED) == []
