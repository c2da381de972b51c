"""Outputs that are too large to be kept with a run, and outputs that lead nowhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from headrace.model.durable.entries import CHILDREN, STAGE
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.workflows.step_ends import Ends
from tests.workflows.scene import Scene, say


async def test_a_failed_fan_out_with_large_outputs_has_failed(scene: Scene) -> None:
    fan_out(scene)
    scene.broken.add("bad")
    run = await scene.run()
    assert run.status is Status.FAILED
    view = await scene.app.workflows.look(run)
    assert (view.steps[0].status, view.steps[0].output) == ("failed", None)
    assert view.steps[0].error is not None
    assert "bad is broken" in view.steps[0].error
    scene.broken.clear()
    assert await scene.app.workflows.retry(run) == ["all", "count"]
    await scene.work()
    assert (await scene.app.get(run.id)).result == {"count": {"word": "3", "length": 1}}
    assert Counter(scene.done) == {"a": 1, "bad": 2, "c": 1, "3": 1}


async def test_what_an_older_program_has_kept_of_a_failed_fan_out_has_failed(scene: Scene) -> None:
    fan_out(scene)
    scene.broken.add("bad")
    run = await scene.run()
    # All of the end was in the artifact.
    [entry] = [each for each in await scene.app.engine.entries(run.id, STAGE) if each.name == "all"]
    stages = {each.name: each for each in await scene.app.engine.entries(run.id, STAGE)}
    assert set(stages) == {"all", "all[output]"}
    older = msgspec.structs.replace(entry, body=stages["all[output]"].body)
    begun = await scene.app.engine.entries(run.id, CHILDREN)
    ends = await Ends.read(scene.app.engine, run.id, [older, *begun])
    assert ends.status("all") == "failed"


def fan_out(scene: Scene) -> None:
    @scene.app.task(retries=0)
    async def bulky(word: str) -> str:
        scene.done.append(word)
        if word in scene.broken:
            raise ValueError(f"{word} is broken")
        return "x" * 600_000

    scene.workflow(
        {"id": "all", "task": "bulky", "each": ["a", "bad", "c"], "params": {"word": "${item}"}},
        {"id": "count", "task": "say", "needs": ["all"], "params": {"word": "3"}},
    )


async def found(scene: Scene, job: Job) -> Any:
    return await scene.app.workflows.output(await scene.app.get(job.id))


async def test_an_output_that_leads_nowhere_fails_the_run_at_once(scene: Scene) -> None:
    scene.workflow(say("a"), output={"x": "${steps.a.output.nowhere}"}, lane="runs")
    run = await scene.run()
    assert (run.status, run.attempt) == (Status.FAILED, 1)
    assert run.error is not None
    assert "output of the workflow: ${steps.a.output.nowhere} leads nowhere" in run.error
    assert scene.done == ["a"]


@pytest.mark.parametrize("output", [None, "${steps}"])
async def test_a_run_with_a_large_output_completes(scene: Scene, output: str | None) -> None:
    fan_out(scene)
    scene.workflow(
        {"id": "one", "task": "bulky", "params": {"word": "a"}},
        {"id": "two", "task": "bulky", "params": {"word": "c"}},
        version=2,
        output=None if output is None else ["${steps.one.output}", "${steps.two.output}"],
    )
    run = await scene.run()
    assert (run.status, run.error) == (Status.COMPLETED, None)
    assert set(run.result) == {"headrace.artifact", "bytes"}
    assert run.result["bytes"] > 1_200_000
    text = "x" * 600_000
    whole = await found(scene, run)
    assert whole == ({"one": text, "two": text} if output is None else [text, text])
    # Begun again, it keeps another.
    await scene.app.workflows.retry(run, "one")
    await scene.work()
    assert await found(scene, run) == whole
