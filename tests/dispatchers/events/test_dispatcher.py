"""Messages become jobs, each one, whatever comes in between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import headrace
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.adapters.redis_streams import RedisStreamsAdapter
from headrace.dispatchers.events.dispatcher import QueueDispatcher
from headrace.dispatchers.heartbeat import KIND
from headrace.errors import InvalidSetting
from tests.conftest import ENGINES, Servers, store_url
from tests.dispatchers.events.conftest import Brokers
from tests.dispatchers.events.harness import NatsTopic, RedisTopic
from tests.dispatchers.events.scene import Scene, message, numbered
from tests.support.processes import until


class Forgetful(RedisStreamsAdapter):
    """Never tells the broker: what a crash between storing and telling leaves behind."""

    async def complete(self, messages: Sequence[Message]) -> None:
        """Nothing."""


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_message_makes_one_job_however_often_it_comes(
    engine: str, servers: Servers, tmp_path: Path, stream: RedisTopic
) -> None:
    scene = Scene(store_url(engine, servers, tmp_path), tmp_path)
    async with scene.app:
        await stream.send([*numbered(50), b"bad"])
        forgetful = Forgetful(**stream.options)
        async with scene.dispatcher(forgetful) as first:
            await until(lambda: first.counts.stored == 50, "50 jobs")
            await scene.has_letters(1)
        async with scene.dispatcher(stream.adapter()) as second:
            await until(lambda: second.counts.duplicates == 50, "50 redeliveries")
            await until(lambda: second.counts.set_aside == 1, "the bad one")
        assert second.counts.stored == 0
        assert await scene.numbers() == dict.fromkeys(range(50), 1)
        assert len(await scene.has_letters(1)) == 1
        assert await scene.app.engine.audit() == []


async def test_a_job_has_the_policy_of_its_task_and_the_name_of_its_message(
    stream: RedisTopic, scene: Scene
) -> None:
    body = {"handler_name": "scan", "params": {"platform": "a"}, "job_id": "nightly", "more": 1}
    await stream.send([msgspec.json.encode(body), message("work", number=1), b'{"handler_name":'])
    async with scene.dispatcher(stream.adapter()) as dispatcher:
        await scene.has_jobs(2)
        await until(lambda: dispatcher.counts.set_aside == 1, "the bad one")
    jobs = {job.task: job for job in await scene.jobs()}
    scan = jobs["scan"]
    assert (scan.queue, scan.lane, scan.max_attempts) == ("scans", "platform:a", 2)
    assert scan.source == "event"
    assert scan.key is not None
    assert scan.key.startswith(f"redis:{stream.name}:")
    assert scan.args == {"platform": "a"}
    sent_at = int(scan.key.rpartition(":")[2].partition("-")[0]) / 1_000
    assert scan.meta == {"schedule": "nightly", "sent_at": sent_at}
    assert jobs["work"].meta.keys() == {"sent_at"}


async def test_a_stream_that_was_made_anew_brings_new_messages(
    brokers: Brokers, scene: Scene
) -> None:
    """It counts from the beginning again, so its messages have the keys of the old ones."""
    topic = NatsTopic(brokers.url("nats"))
    for generation in range(2):
        await topic.open()
        await topic.send(numbered(3, start=10 * generation))
        await topic.send([f"bad {generation}".encode()])
        async with scene.dispatcher(topic.adapter()):
            await scene.has_jobs(3 * (generation + 1))
            await scene.has_letters(generation + 1)
        await topic.close()
    assert await scene.numbers() == dict.fromkeys((0, 1, 2, 10, 11, 12), 1)
    letters = await scene.has_letters(2)
    assert {letter.raw for letter in letters} == {b"bad 0", b"bad 1"}


async def test_a_stop_stores_what_is_here_and_leaves_nothing_behind(
    stream: RedisTopic, scene: Scene
) -> None:
    await stream.send(numbered(500))
    adapter = stream.adapter(batch_size=100)
    dispatcher = QueueDispatcher(scene.app, adapter, batch_size=100, name="mine")
    await dispatcher.start()
    await until(lambda: dispatcher.counts.received >= 200, "200 messages")
    await dispatcher.stop()
    counts = dispatcher.counts
    assert counts.held == 0
    assert counts.stored == counts.received == await scene.count()
    assert await scene.app.engine.record_list(KIND) == []
    async with scene.dispatcher(stream.adapter()) as another:
        await scene.has_jobs(500)
        await until(lambda: _lag_is(another, 0), "the end of the lag")
        assert another.counts.duplicates == 0


async def test_others_can_see_a_dispatcher_and_its_lag(stream: RedisTopic, scene: Scene) -> None:
    await stream.send([*numbered(3), b"bad"])
    async with scene.dispatcher(stream.adapter(), name="mine") as dispatcher:
        await until(lambda: dispatcher.counts.stored == 3, "3 jobs")
        await until(lambda: dispatcher.counts.set_aside == 1, "the bad one")
        dispatcher.heartbeat.wake()

        async def seen() -> bool:
            dispatcher.heartbeat.wake()
            record = await scene.app.engine.record_get(KIND, "mine")
            if record is None:
                return False
            told = msgspec.json.decode(record.body)
            return bool(told["lag"] == 0 and told["stored"] == 3 and told["healthy"])

        await until(seen, "the record")


async def test_what_a_dead_dispatcher_left_is_forgotten_after_a_day(
    stream: RedisTopic, servers: Servers, tmp_path: Path
) -> None:
    app = headrace.App(store_url(ENGINES[0], servers, tmp_path))
    async with app:
        await app.engine.record_put(KIND, "dead", b"{}")
        app.clock.advance(86_500)
        await app.engine.record_put(KIND, "other", b"{}")
        async with QueueDispatcher(app, stream.adapter(), name="mine"):

            async def there() -> bool:
                return {each.key for each in await app.engine.record_list(KIND)} == {
                    "other",
                    "mine",
                }

            await until(there, "the records")


async def test_two_dispatchers_share_a_stream(stream: RedisTopic, scene: Scene) -> None:
    options = {"batch_size": 10}
    async with (
        scene.dispatcher(stream.adapter(**options)) as one,
        scene.dispatcher(stream.adapter(**options)) as other,
    ):
        await until(lambda: one.receiver.connected and other.receiver.connected, "both")
        await stream.send(numbered(2_000))
        await scene.has_jobs(2_000)
        await until(lambda: one.counts.stored + other.counts.stored == 2_000, "all to be counted")
        assert min(one.counts.stored, other.counts.stored) > 0
    assert await scene.numbers() == dict.fromkeys(range(2000), 1)


async def test_settings_are_checked(scene: Scene, stream: RedisTopic) -> None:
    with pytest.raises(InvalidSetting, match="batch_size must be between 1 and 10000, got 0"):
        QueueDispatcher(scene.app, stream.adapter(), batch_size=0)
    with pytest.raises(InvalidSetting, match="hold_seconds"):
        QueueDispatcher(scene.app, stream.adapter(), hold_seconds=-1)


async def _lag_is(dispatcher: QueueDispatcher, expected: int) -> bool:
    return await dispatcher.lag() == expected
