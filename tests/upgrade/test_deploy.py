"""An upgrade where one command migrates, and all other programs must not."""

from __future__ import annotations

import pytest

from tests.support.processes import Process, until
from tests.upgrade.conftest import Program, Scene
from tests.upgrade.installations import Installation

NEVER = {"HEADRACE_MIGRATE": "never"}


@pytest.mark.timeout(240)
async def test_one_command_migrates_and_the_others_wait_for_it(
    scene: Scene, old: Installation, new: Installation
) -> None:
    url = {"HEADRACE_URL": scene.url}
    assert old.run("migrate", **url).code == 0
    older = scene.program(old, "worker", **NEVER)
    producer = scene.program(old, "producer", **NEVER)
    await older.at_work()

    # A new program must not change anything, and says who has to.
    too_early = Program(scene, new, "worker")
    too_early.start(**NEVER)
    assert await too_early.process.ended() != 0
    assert "Run `headrace migrate`" in too_early.process.said

    waiting = Process(
        [new.headrace, "migrate", "--wait"],
        folder=scene.folder,
        environment=new.environment(**url),
    )
    scene.processes.started.append(waiting)
    await until(lambda: "waiting for" in waiting.said, "that it waits")
    assert waiting.code is None

    migrated = new.run("migrate", **url)
    assert migrated.code == 0
    assert "Applied: " in migrated.out
    assert await waiting.ended() == 0

    newer = scene.program(new, "worker", **NEVER)
    await newer.at_work()
    for program in (older, producer):
        await program.stop()
        program.start(**NEVER)
        await program.at_work()
    scene.check()
