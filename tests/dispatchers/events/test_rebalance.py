"""Kafka with dispatchers that come, go and die: every message makes one job."""

from __future__ import annotations

from pathlib import Path

from tests.dispatchers.events.harness import KafkaTopic
from tests.dispatchers.events.program import DIE
from tests.dispatchers.events.scene import Scene, numbered
from tests.support.processes import Processes, until

MESSAGES = 10_000
BAD = 20


async def test_dispatchers_that_are_killed_lose_nothing_and_repeat_nothing(
    kafka_of_eight: KafkaTopic, scene: Scene, tmp_path: Path
) -> None:
    topic = kafka_of_eight
    config = scene.config("kafka", topic.options | {"session_timeout_ms": 2_000}, batch_size=200)
    half = MESSAGES // 2
    await topic.send(numbered(half))
    await topic.send([b"not a message"] * (BAD // 2))
    with Processes(tmp_path) as processes:
        # One dies with a batch that is stored and not committed, one with a batch that is not
        # stored, one is killed at no special moment; and each has a successor.
        first = scene.process(processes, config, **{DIE: "after:4"})
        await first.ended()
        doomed = [
            scene.process(processes, config, **{DIE: "after:9"}),
            scene.process(processes, config, **{DIE: "before:9"}),
        ]
        await scene.has_jobs(half // 4)
        steady = scene.process(processes, config, "--json")
        await topic.send(numbered(half, start=half))
        await topic.send([b"not a message"] * (BAD // 2))
        for process in doomed:
            await process.ended()
        victim = scene.process(processes, config)
        await until(lambda: "Kafka gave us" in victim.said, "a share for the last")
        victim.kill()
        await scene.has_jobs(MESSAGES, limit=60)
        letters = await scene.has_letters(BAD)
        steady.terminate()
        assert await steady.ended() == 0, steady.said
    assert first.code == -9
    assert await scene.numbers() == dict.fromkeys(range(MESSAGES), 1)
    assert len(letters) == BAD
    assert {letter.raw for letter in letters} == {b"not a message"}


async def test_a_partition_is_given_up_with_nothing_in_hand(
    kafka_of_eight: KafkaTopic, scene: Scene
) -> None:
    """A second dispatcher that joins and leaves in good order makes nobody see a message twice."""
    topic = kafka_of_eight
    async with scene.dispatcher(topic.adapter(batch_size=50), batch_size=50) as one:
        await until(lambda: one.reader.connected, "the first to join")
        await topic.send(numbered(1_000))
        async with scene.dispatcher(topic.adapter(batch_size=50), batch_size=50) as other:
            await topic.send(numbered(1_000, start=1_000))
            await until(lambda: other.reader.connected, "the second to join")
            await topic.send(numbered(1_000, start=2_000))
            await scene.has_jobs(3_000)
            await until(lambda: other.counts.stored > 0, "a share for the second")
        await topic.send(numbered(1_000, start=3_000))
        await scene.has_jobs(4_000)
        assert one.counts.duplicates + other.counts.duplicates == 0
        assert await one.lag() == 0
    assert await scene.numbers() == dict.fromkeys(range(4000), 1)
