"""Dispatchers that come, go and die while messages flow: what becomes of the messages.

A test runs it small; `python -m bench --scenario events` runs it with 100,000 messages.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.dispatchers.events.harness import KafkaTopic
from tests.dispatchers.events.program import DIE
from tests.dispatchers.events.scene import Scene, message
from tests.support.processes import Process, Processes, until

BAD = b"not a message"
CREW = 3
CHUNK = 5_000
LOOK_SECONDS = 0.1


class Outcome(msgspec.Struct, kw_only=True):
    """What came of the messages, and what was done to the dispatchers.

    `assignments` counts how often a dispatcher was given its share of the partitions, `repeated`
    how many messages the dispatchers that were left at the end were given for a second time.
    """

    messages: int
    jobs: int
    twice: int
    missing: int
    letters: int
    killed: int
    assignments: int
    repeated: int
    seconds: float


def deaths() -> Iterator[dict[str, str]]:
    """How each dispatcher dies: of itself with a batch that is stored and not committed, or with
    one that is not stored, or whenever it is killed. Of three in a row one lives that long.
    """
    return itertools.cycle([{}, {DIE: "after:7"}, {}, {DIE: "before:7"}])


async def ordeal(
    scene: Scene, topic: KafkaTopic, folder: Path, *, messages: int, bad: int, kills: int
) -> Outcome:
    """Send messages, bad ones among them, while dispatchers are killed one after the other."""
    config = scene.config("kafka", topic.options | {"session_timeout_ms": 2_000}, batch_size=200)
    began = time.monotonic()
    with Processes(folder) as processes:
        lots = deaths()
        crew = [scene.process(processes, config, "--json", **next(lots)) for _ in range(CREW)]
        sending = asyncio.create_task(_send(topic, messages, bad))
        for number in range(kills):
            await _has_jobs(scene, messages * (number + 1) // (kills + 1))
            victim = crew.pop(0)
            victim.kill()
            crew.append(scene.process(processes, config, "--json", **next(lots)))
        await sending
        await _has_jobs(scene, messages)
        letters = await scene.has_letters(bad)
        seconds = time.monotonic() - began
        left = [process for process in crew if process.code is None]
        for process in left:
            process.terminate()
            assert await process.ended() == 0, process.said
        everybody = list(processes.started)
    numbers = await scene.numbers()
    assert {letter.raw for letter in letters} <= {BAD}
    return Outcome(
        messages=messages,
        jobs=numbers.total(),
        twice=sum(count - 1 for count in numbers.values()),
        missing=len(set(range(messages)) - set(numbers)),
        letters=len(letters),
        killed=sum(process.code == -9 for process in everybody),
        assignments=sum(process.said.count("Kafka gave us") for process in everybody),
        repeated=sum(_repeated(process) for process in left),
        seconds=seconds,
    )


async def _send(topic: KafkaTopic, messages: int, bad: int) -> None:
    bodies = [message(number=number) for number in range(messages)]
    for number in range(bad):
        bodies.insert(number * messages // bad, BAD)
    for start in range(0, len(bodies), CHUNK):
        await topic.send(bodies[start : start + CHUNK])


async def _has_jobs(scene: Scene, count: int) -> None:
    async def enough() -> bool:
        # Counting many jobs again and again would take the processor from who makes them.
        await asyncio.sleep(LOOK_SECONDS)
        return await scene.count() >= count

    await until(enough, f"{count} jobs", 60)


def _repeated(process: Process) -> int:
    told = json.loads(process.said.splitlines()[-1])
    return int(told["duplicates"])
