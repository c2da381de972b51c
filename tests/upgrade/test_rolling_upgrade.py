"""Programs of two installations at work on one store while each of them is started again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

import headrace
from headrace.engine.base import Engine
from headrace.model.status import Status
from headrace.monitor.findings.workers import held_jobs
from tests.support.processes import until
from tests.upgrade.conftest import LIMIT, Scene
from tests.upgrade.installations import Installation
from tests.upgrade.rolling import roll


async def said_by(installation: Installation, url: str, *arguments: str) -> Any:
    """What a command of an installation says about a store, as JSON."""
    ran = await asyncio.to_thread(installation.run, *arguments, "--json", HEADRACE_URL=url)
    assert ran.err == ""
    return json.loads(ran.out)


async def nothing_is_held_by_the_dead(engine: Engine, scene: Scene) -> bool:
    """Whether leases of killed workers are over, and what they held is with others."""
    workers = await engine.workers()
    living = [program for program in scene.programs if program.kind == "worker"]
    queues = [queue.name for queue in await engine.queues()]
    held = await held_jobs(engine, workers, queues)
    return sum(worker.alive for worker in workers) == len(living) and not any(
        each.jobs for each in held.values()
    )


def wrong(doctor: Any) -> list[str]:
    """What a doctor finds wrong."""
    # The PostgreSQL of the tests does not sync to disk, which the doctor does not let pass.
    return [
        each["detail"]
        for each in doctor["findings"]
        if each["level"] == "error" and each["subject"] not in ("fsync", "full_page_writes")
    ]


@pytest.mark.timeout(240)
async def test_nothing_is_lost_and_nothing_refused(
    scene: Scene, old: Installation, new: Installation
) -> None:
    await roll(scene, old, new)

    # What killed workers held is told by a doctor until others have taken it over.
    async with headrace.App(scene.url) as app:

        async def taken_over() -> bool:
            return await nothing_is_held_by_the_dead(app.engine, scene)

        await until(taken_over, "others to take over", LIMIT)

    # People use the older command line as well.
    jobs, state, newer, old_doctor, new_doctor = await asyncio.gather(
        said_by(old, scene.url, "jobs", "list"),
        said_by(old, scene.url, "migrate", "--check"),
        said_by(new, scene.url, "migrate", "--check"),
        said_by(old, scene.url, "doctor"),
        said_by(new, scene.url, "doctor"),
    )
    assert jobs["jobs"]
    assert (state["version"], state["pending"], state["refused"]) == (newer["known"], [], False)
    assert state["known"] < newer["known"]
    assert wrong(old_doctor) == wrong(new_doctor) == []
    assert "is too old to say which schema it knows" in str(new_doctor["findings"])

    for program in scene.programs:
        if program.kind == "producer":
            await program.stop()
    acknowledged = {line.job: scene.side(line) for line in scene.lines("acknowledged")}
    async with headrace.App(scene.url) as app:

        async def over() -> bool:
            queues = await app.engine.queues()
            return not any(q.scheduled + q.waiting + q.ready + q.running for q in queues)

        await until(over, "the end of all jobs", LIMIT)
        found = await app.engine.get(list(acknowledged))
        assert await app.engine.audit() == []
    for program in scene.programs:
        if program.kind == "worker":
            await program.stop()
    assert {job.id for job in found} == acknowledged.keys()
    assert Counter(job.status for job in found) == {Status.COMPLETED: len(acknowledged)}
    starts = Counter((line.job, line.token) for line in scene.lines("start"))
    assert [attempt for attempt, times in starts.items() if times > 1] == []
    # The outcome that counts is that of the last token.
    counted = {(job.id, job.token) for job in found}
    ends = [line for line in scene.lines("end") if (line.job, line.token) in counted]
    assert {(acknowledged[line.job], scene.side(line)) for line in ends} == {
        ("old", "old"),
        ("old", "new"),
        ("new", "old"),
        ("new", "new"),
    }
