"""Runs of workflows on real engines: order, parallel steps, conditions, fan-out, versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace import JobOrchestrator
from headrace.errors import InvalidArguments, InvalidInput, UnknownWorkflow
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.workflows import steps
from headrace.workflows.model import Workflow
from headrace.workflows.run import get_all
from tests.workflows.scene import Scene, say


async def test_steps_run_after_what_they_need(scene: Scene) -> None:
    scene.workflow(say("last", "left", "right"), say("left", "first"), say("right", "first"),
                   say("first"))  # fmt: skip
    job = await scene.run()
    assert job.status is Status.COMPLETED
    assert job.result == {"last": {"word": "last", "length": 4}}
    assert (scene.done[0], scene.done[-1]) == ("first", "last")
    assert sorted(scene.done) == ["first", "last", "left", "right"]
    assert job.progress == 100
    assert set((await scene.statuses(job)).values()) == {"completed"}


async def test_steps_that_do_not_need_each_other_run_at_once(scene: Scene) -> None:
    steps = [say(f"s{n}") for n in range(5)]
    for step in steps:
        step["params"]["seconds"] = 0.2
    scene.workflow(*steps)
    await scene.run()
    assert scene.most > 1


async def test_outputs_and_params_are_referred_to(scene: Scene) -> None:
    scene.workflow(
        {"id": "one", "task": "say", "params": {"word": "${params.word}"}},
        {"id": "two", "task": "say", "params": {"word": "${steps.one.output.length} letters"}},
        params={"word": {"type": "string"}, "extra": {"type": "integer", "default": 3}},
        output={"said": "${steps.two.output.word}", "extra": "${params.extra}", "id": "${run.id}"},
    )
    job = await scene.run({"word": "hello"})
    assert job.result == {"said": "5 letters", "extra": 3, "id": job.id}


async def test_a_condition_decides_which_way_is_taken(scene: Scene) -> None:
    scene.workflow(
        say("look"),
        say("long", when="${steps.look.output.length} > 10"),
        say("after-long", "long"),
        say("short", when="${steps.look.output.length} <= 10"),
        say("end", "after-long", "short"),
        output="${steps.long.output.word}",
    )
    job = await scene.run()
    assert await scene.statuses(job) == {
        "look": "completed",
        "long": "skipped",
        "after-long": "skipped",
        "short": "completed",
        "end": "completed",
    }
    assert job.result is None
    assert scene.done == ["look", "short", "end"]


async def test_a_step_is_run_for_each_item(scene: Scene) -> None:
    scene.workflow(
        {"id": "list", "task": "numbers", "params": {"count": "${params.count}"}},
        {"id": "each", "task": "double", "each": "${steps.list.output}",
         "params": {"value": "${item}"}},
        {"id": "sum", "task": "add", "params": {"values": "${steps.each.output}"}},
    )  # fmt: skip
    job = await scene.run({"count": 50})
    assert job.result == {"sum": 2450}
    assert Counter(scene.done) == Counter(f"double {n}" for n in range(50))
    view = await scene.app.workflows.look(job)
    assert [(step.jobs, step.done) for step in view.steps] == [(1, 1), (50, 50), (1, 1)]


async def test_a_fan_out_that_was_broken_off_is_completed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.workflow(
        {"id": "each", "task": "double", "each": [1, 2, 3], "params": {"value": "${item}"}}
    )
    insert, cut_off = scene.app.engine.insert, iter([True])

    async def broken_once(jobs: Any, **options: Any) -> Any:
        if jobs[0].parent is not None and next(cut_off, False):
            raise RuntimeError("cut off")
        return await insert(jobs, **options)

    monkeypatch.setattr(scene.app.engine, "insert", broken_once)
    job = await scene.run()
    assert job.status is Status.SCHEDULED
    assert await scene.app.rerun([job]) == [job.id]
    await scene.work()
    assert (await scene.app.get(job.id)).result == {"each": [2, 4, 6]}
    assert sorted(scene.done) == ["double 1", "double 2", "double 3"]


async def test_a_step_for_each_of_nothing_is_over_at_once(scene: Scene) -> None:
    scene.workflow(
        {"id": "each", "task": "double", "each": [], "params": {"value": "${item}"}},
        {"id": "sum", "task": "add", "params": {"values": "${steps.each.output}"}},
    )
    job = await scene.run()
    assert (job.result, scene.done) == ({"sum": 0}, [])


async def test_a_run_keeps_the_version_it_began_with(scene: Scene) -> None:
    scene.workflow(say("old"), version=1)
    job = await scene.app.workflows.run("w")
    scene.workflow(say("new"), version=2)
    newer = await scene.app.workflows.run("w")
    older = await scene.app.workflows.run("w", version="1")
    await scene.work()
    assert sorted(scene.done) == ["new", "old", "old"]
    for each, version in ((job, 1), (newer, 2), (older, 1)):
        view = await scene.app.workflows.look(await scene.app.get(each.id))
        assert (view.version, view.status) == (version, "completed")


async def test_a_version_is_never_something_else(scene: Scene, tmp_path: Path) -> None:
    scene.workflow(say("one"), version=1)
    await scene.run()
    other = Scene(scene.app.settings.url, tmp_path)
    other.workflow(say("another"), version=1)
    async with other.app:
        with pytest.raises(InvalidInput, match="give what you have changed another version"):
            await other.app.workflows.run("w")
    with pytest.raises(InvalidInput, match="is there twice"):
        scene.workflow(say("another"), version=1)


async def test_steps_have_queue_priority_retries_and_timeout(scene: Scene) -> None:
    scene.workflow(
        say("a", queue="other", priority=7, retries=2, timeout=5.0, lane="l:{word}"),
        queue="runs", lane="platform:{platform}", params={"platform": {"type": "string"}},
    )  # fmt: skip
    job = await scene.run({"platform": "x"})
    assert (job.queue, job.lane, job.meta["workflow_id"]) == ("runs", "platform:x", "w")
    view = await scene.app.workflows.look(job)
    assert view.steps[0].job_id is not None
    child = await scene.app.get(view.steps[0].job_id)
    assert (child.queue, child.priority, child.max_attempts, child.timeout, child.lane) == (
        *("other", 7, 3, 5.0),
        "l:a",
    )
    assert (child.parent, child.group, child.source) == (job.id, "a", "workflow")
    assert child.meta == {"workflow_id": "w", "workflow_version": 1, "step": "a"}


async def test_a_step_that_would_wait_for_its_own_run_fails(scene: Scene) -> None:
    scene.workflow(say("a", queue="runs", lane="l"), queue="runs", lane="l")
    job = await scene.run()
    assert job.error is not None
    assert "would wait for its own workflow" in job.error


async def test_a_reference_that_leads_nowhere_fails_its_step(scene: Scene) -> None:
    scene.workflow(say("a"), {"id": "b", "task": "say", "params": {"word": "${steps.a.output.no}"}})
    job = await scene.run()
    assert job.error is not None
    assert "leads nowhere: an object with 'word', 'length' has no 'no'" in job.error


async def test_an_output_that_does_not_fit_fails_the_step_that_gets_it(scene: Scene) -> None:
    scene.workflow(
        say("a"), {"id": "b", "task": "double", "params": {"value": "${steps.a.output}"}}
    )
    job = await scene.run()
    assert job.error is not None
    assert 'step "b" failed' in job.error
    assert "Expected `int`, got `object`" in job.error


async def test_outputs_that_are_large_together_pass(scene: Scene) -> None:
    scene.workflow(
        {"id": "each", "task": "numbers", "each": [100_000, 100_000],
         "params": {"count": "${item}"}},
        {"id": "last", "task": "double", "params": {"value": "${steps.each.output[1][77]}"}},
    )  # fmt: skip
    job = await scene.run()
    assert job.result == {"last": 154}
    view = await scene.app.workflows.look(job)
    assert (view.steps[0].status, view.steps[0].output) == ("completed", None)


async def test_cancelling_a_run_cancels_its_steps(scene: Scene) -> None:
    scene.workflow(say("a", queue="nobody"))
    job = await scene.app.workflows.run("w")
    orchestrator = JobOrchestrator(scene.app, queues=["default"])
    await orchestrator.run_until_idle()
    [child] = (await scene.app.list(headrace.JobFilter(parent=job.id))).jobs
    assert child.status is Status.PENDING
    await scene.app.cancel(job.id)
    assert (await scene.app.get(child.id)).status is Status.CANCELLED
    assert await scene.statuses(await scene.app.get(job.id)) == {"a": "cancelled"}


async def test_a_key_makes_one_run(scene: Scene) -> None:
    scene.workflow(say("a"))
    first = await scene.app.workflows.run("w", key="today")
    again = await scene.app.workflows.run("w", key="today")
    assert first.id == again.id


async def test_params_are_checked(scene: Scene) -> None:
    scene.workflow(say("a"), params={"n": {"type": "integer"}, "s": {"type": "string"}})
    for params, reason in (
        ({"n": 1}, "needs the parameter 's'"),
        ({"n": "x", "s": ""}, "parameter 'n' must be of type integer, got 'x'"),
        ({"n": 1, "s": "", "z": 1}, "has no parameter 'z'; it takes: n, s"),
    ):
        with pytest.raises(InvalidArguments, match=reason):
            await scene.app.workflows.run("w", params)
    with pytest.raises(UnknownWorkflow, match='unknown workflow "x"; known: "w"'):
        await scene.app.workflows.run("x")
    with pytest.raises(UnknownWorkflow, match="has no version 9; known: 1"):
        await scene.app.workflows.run("w", version=9)


async def test_a_workflow_in_code_is_the_same_as_in_a_file(scene: Scene) -> None:
    flow = scene.app.workflow("code", params={"count": 4})
    numbers = flow.step("list", "numbers", {"count": flow.params.count})
    each = flow.step("each", "double", {"value": flow.item}, each=numbers.output)
    flow.step("sum", "add", {"values": each.output}, when=f"{numbers.output[0]} == 0", needs=[each])
    job = await scene.app.workflows.run("code")
    await scene.work()
    assert (await scene.app.get(job.id)).result == {"sum": 12}
    assert scene.app.workflows.find("code") == msgspec.convert(
        {
            "id": "code",
            "params": {"count": {"type": "integer", "default": 4}},
            "steps": [
                {"id": "list", "task": "numbers", "params": {"count": "${params.count}"}},
                {"id": "each", "task": "double", "params": {"value": "${item}"},
                 "each": "${steps.list.output}"},
                {"id": "sum", "task": "add", "params": {"values": "${steps.each.output}"},
                 "when": "${steps.list.output[0]} == 0", "needs": ["each"]},
            ],
        },
        Workflow,
    )  # fmt: skip


async def test_many_jobs_of_a_step_are_counted_rather_than_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [str(number) for number in range(5)]
    scene.workflow(say("all", queue="held", each=items), say("other", queue="held"))
    await scene.app.pause("held")
    job = await scene.run()
    children = await scene.app.engine.list_jobs(JobFilter(parent=job.id, group="all"))
    await scene.app.engine.cancel([child.id for child in children.jobs[:2]], "enough")
    exact = await scene.app.workflows.look(job)
    monkeypatch.setattr(steps, "FEW", 1)
    read: list[str] = []
    real = get_all

    async def reading(engine: Any, ids: Any) -> Any:
        read.extend(ids)
        return await real(engine, ids)

    monkeypatch.setattr(steps, "get_all", reading)
    assert await scene.app.workflows.look(job, exact=False) == exact
    assert [(step.done, step.jobs) for step in exact.steps] == [(2, 5), (0, 1)]
    assert len(read) == 1


async def test_a_handler_waits_for_runs_as_for_other_children(scene: Scene) -> None:
    app = scene.app
    scene.workflow(
        {"id": "one", "task": "say", "params": {"word": "${params.word}"}},
        params={"word": {"type": "string"}},
        queue="runs",
        lane="one at a time",
        output="${steps.one.output.length}",
    )

    @app.task
    async def measure(ctx: headrace.Context, words: list[str]) -> list[int]:
        runs = [app.workflows.job("w", {"word": word}, priority=3) for word in words]
        return await ctx.gather(runs, group="words")

    job = await measure.enqueue(words=["a", "bcd"])
    await scene.work()
    assert await app.result(job.id, 5) == [1, 3]
    runs = (await app.list(JobFilter(parent=job.id, group="words"))).jobs
    assert {(each.queue, each.lane, each.priority) for each in runs} == {
        ("runs", "one at a time", 3)
    }
    assert [each.meta["workflow_id"] for each in runs] == ["w", "w"]
    with pytest.raises(InvalidArguments, match="word"):
        app.workflows.job("w", {})
