"""Every kind provoked by the real thing, with three real servers: one is killed, and replaced.

Exactly one message and one resolution arrive of each, whoever evaluates, whoever is killed and
whether or not the receiver is there. What cannot be had, one message if a server is killed between
the acceptance by the receiver and its record, is in `test_servers.py`: it comes again, under the
same id.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headrace.model.alerts.rule import KINDS
from tests.alerts.scene import SECRET, SERVERS, SUBJECTS, Scene
from tests.alerts.shared import OPEN, RELEASE
from tests.publishing.receiver import Receiver
from tests.support.processes import Process, Processes, until

# Not at the same time as the others: it comes about when jobs that have waited are run at last.
LAST = "wait_p95"


@pytest.mark.timeout(600)
async def test_each_kind_is_told_once_and_resolved_once(
    url: str, tmp_path: Path, receiver: Receiver
) -> None:
    await receiver.stop()  # nobody is there when the first alert fires
    with Processes(tmp_path) as programs:
        scene = Scene(url, tmp_path, programs, receiver)
        async with scene.app:
            try:
                await play(scene)
            finally:
                await scene.close()


async def play(scene: Scene) -> None:
    await scene.write_files()
    scene.send()
    scene.servers = [scene.start("server", "--port", "0") for _ in range(SERVERS)]
    scene.start_worker("steady", "mail", "fails", "lanes", "calls")
    crane = scene.start_worker("crane", "crane")
    cron = scene.start("dispatcher", "cron", "--config", "cron.yaml")
    scene.start("dispatcher", "queue", "--config", "orders.yaml", "--name", "orders")
    await scene.started(workers=5, dispatchers=2)
    assert scene.told == []
    await kill_a_server_that_could_not_deliver(scene)
    await provoke(scene, crane, cron)
    # Three servers judge it, the new one too.
    await scene.evaluated()
    assert scene.receiver.requests == []
    await scene.receiver.start()
    await scene.let_pass(330)
    at_once = [each for each in KINDS if each != LAST]
    await scene.heard("firing", *at_once)
    assert Counter(scene.told) == dict.fromkeys([(each, "firing") for each in at_once], 1)
    await mend(scene)
    await scene.evaluated()
    await scene.let_pass(90)
    await scene.heard("firing", LAST)
    # 10 of 310 waited for long: not 5 in 100.
    await scene.enqueue(300, "late")
    await scene.ended("late")
    await scene.let_pass(90)
    await scene.heard("resolved", *KINDS)
    await scene.evaluated()
    await scene.let_pass(30)
    await scene.evaluated()
    judge(scene)
    assert await scene.engine.audit() == []


async def kill_a_server_that_could_not_deliver(scene: Scene) -> None:
    """The dispatcher has set a message aside, of which nobody can be told."""

    async def tried() -> Process | None:
        # Nobody has to look while it is tried, which takes no time: the record of it stays.
        for job in await scene.deliveries():
            for entry in job.attempts:
                for each in scene.servers:
                    if f"-{each.pid}-alerts-" in entry.worker and entry.failure is not None:
                        return each
        return None

    victim = await until(tried, "a delivery that was tried", 120)
    assert victim is not None
    victim.kill()
    await scene.replace_server(victim)


async def provoke(scene: Scene, crane: Process, cron: Process) -> None:
    await scene.enqueue(3, "long")
    await scene.enqueue(10, "late")
    await scene.enqueue(6, "fails", "broken")
    await scene.enqueue(2, "lanes", "held", lane="user:7")
    await scene.enqueue(2, "calls", "call", lane="task:call", width=2)
    await scene.enqueue(1, "crane", "held")
    await scene.running(2)
    crane.kill()
    cron.kill()
    await scene.space.fill()
    await scene.ended("fails", "calls")


async def mend(scene: Scene) -> None:
    scene.start_worker("crane", "crane", "long", "late")
    scene.start("dispatcher", "cron", "--config", "cron.yaml")
    scene.let(RELEASE)
    scene.let(OPEN)
    await scene.enqueue(60, "fails")
    await scene.enqueue(1, "calls", "call", lane="task:call", width=2)
    for letter in (await scene.app.dead_letters()).dead_letters:
        await scene.app.remove_dead_letter(letter.id)
    await scene.ended("long", "late", "lanes", "fails", "calls")
    await scene.space.free()


def judge(scene: Scene) -> None:
    expected = [(each, status) for each in KINDS for status in ("firing", "resolved")]
    assert Counter(scene.told) == dict.fromkeys(expected, 1)
    events = [each.verified(SECRET) for each in scene.receiver.requests]
    assert len({each["id"] for each in events}) == len(events)
    for kind in KINDS:
        first, last = (each["data"] for each in events if each["data"]["rule"] == kind)
        assert (first["status"], last["status"]) == ("firing", "resolved")
        assert first["episode"] == last["episode"]
        assert SUBJECTS.get(kind, first["subject"]) == first["subject"] == last["subject"]
