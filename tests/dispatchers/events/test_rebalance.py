"""Kafka with dispatchers that come, go and die: every message makes one job."""

from __future__ import annotations

from pathlib import Path

from tests.dispatchers.events.harness import KafkaTopic
from tests.dispatchers.events.ordeal import ordeal
from tests.dispatchers.events.scene import Scene, numbered
from tests.dispatchers.events.test_dispatcher import _lag_is
from tests.support.processes import until

MESSAGES = 6_000
BAD = 20
KILLS = 3


async def test_dispatchers_that_are_killed_lose_nothing_and_repeat_nothing(
    kafka_of_eight: KafkaTopic, scene: Scene, tmp_path: Path
) -> None:
    outcome = await ordeal(scene, kafka_of_eight, tmp_path, messages=MESSAGES, bad=BAD, kills=KILLS)
    assert (outcome.jobs, outcome.twice, outcome.missing) == (MESSAGES, 0, 0)
    assert outcome.letters == BAD
    assert outcome.killed >= KILLS
    # Partitions were shared out at the start, and anew after each death and each arrival.
    assert outcome.assignments > KILLS


async def test_a_partition_is_given_up_with_nothing_in_hand(
    kafka_of_eight: KafkaTopic, scene: Scene
) -> None:
    """A second dispatcher that joins and leaves in good order makes nobody see a message twice."""
    topic = kafka_of_eight
    # Nobody is taken for dead because a busy machine keeps it from saying that it lives.
    options = {"batch_size": 50, "session_timeout_ms": 3_000}
    async with scene.dispatcher(topic.adapter(**options), batch_size=50) as one:
        await until(lambda: one.receiver.connected, "the first to join")
        await topic.send(numbered(1_000))
        async with scene.dispatcher(topic.adapter(**options), batch_size=50) as other:
            await topic.send(numbered(1_000, start=1_000))
            await until(lambda: other.receiver.connected, "the second to join")
            await topic.send(numbered(1_000, start=2_000))
            await scene.has_jobs(3_000)
            await until(lambda: other.counts.stored > 0, "a share for the second")
        await topic.send(numbered(1_000, start=3_000))
        await scene.has_jobs(4_000)
        assert one.counts.duplicates + other.counts.duplicates == 0
        await until(lambda: _lag_is(one, 0), "the end of the lag")
    assert await scene.numbers() == dict.fromkeys(range(4000), 1)
