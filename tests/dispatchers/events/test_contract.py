"""What every adapter promises, against a real broker each."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.dispatchers.events.adapter import Message, QueueAdapter
from headrace.dispatchers.events.adapters.kafka import KafkaAdapter
from headrace.dispatchers.events.adapters.nats import NatsAdapter
from headrace.dispatchers.events.adapters.rabbitmq import RabbitmqAdapter
from headrace.dispatchers.events.adapters.redis_streams import RedisStreamsAdapter
from headrace.dispatchers.events.adapters.sqs import SqsAdapter
from tests.dispatchers.events.harness import Topic
from tests.support.processes import until
from tests.support.servers import free_port

LIMIT = 60.0


@asynccontextmanager
async def connected(topic: Topic, **options: Any) -> AsyncIterator[QueueAdapter]:
    adapter = topic.adapter(**options)
    await adapter.connect()
    try:
        yield adapter
    finally:
        await adapter.disconnect()


class Receiver:
    """Receives in the background, as the dispatcher does, and keeps what came."""

    def __init__(self, adapter: QueueAdapter, *, complete: bool = False) -> None:
        self.adapter = adapter
        self.complete = complete
        self.messages: list[Message] = []
        self._task = asyncio.create_task(self._receive())

    async def _receive(self) -> None:
        async for batch in self.adapter.receive():
            assert batch, "a batch is never empty"
            self.messages += batch
            if self.complete:
                await self.adapter.complete(batch)

    async def has(self, count: int) -> list[Message]:
        """Wait for so many messages."""

        def enough() -> bool:
            if self._task.done():
                self._task.result()
            return len(self.messages) >= count

        await until(enough, f"the arrival of {count} messages", LIMIT)
        return self.messages

    async def stop(self) -> None:
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=0.1)


@asynccontextmanager
async def receiving(adapter: QueueAdapter, *, complete: bool = False) -> AsyncIterator[Receiver]:
    receiver = Receiver(adapter, complete=complete)
    try:
        yield receiver
    finally:
        await receiver.stop()


def numbered(count: int) -> list[bytes]:
    return [f"message {number}".encode() for number in range(count)]


async def test_a_message_comes_with_all_that_names_it_and_counts_until_it_is_completed(
    topic: Topic,
) -> None:
    assert await topic.adapter().lag() in (None, 0)
    bodies = [*numbered(3), "한국어 ☂".encode(), b"x" * 100_000]
    if topic.binary:
        bodies += [b"", bytes(range(256))]
    before = time.time()
    await topic.send(bodies)
    async with connected(topic) as adapter, receiving(adapter) as receiver:
        messages = await receiver.has(len(bodies))
        assert Counter(message.body for message in messages) == Counter(bodies)
        assert len({message.key for message in messages}) == len(bodies)
        for message in messages:
            assert message.key is not None
            assert message.key.startswith(f"{adapter.name}:")
            assert topic.name in message.topic or message.topic in topic.url
            assert message.fault is None
            if not topic.keyed_by_sender:
                assert message.sent_at is not None
                assert before - 2 < message.sent_at < time.time() + 2
        await until(lambda: _lag_is(adapter, len(bodies)), "a lag of all", LIMIT)
        await adapter.complete(messages)
        await until(lambda: _lag_is(adapter, 0), "the end of the lag", LIMIT)


async def test_a_message_that_comes_while_somebody_waits_is_delivered(topic: Topic) -> None:
    async with connected(topic) as adapter, receiving(adapter, complete=True) as receiver:
        for count in (1, 2, 3):
            await topic.send([b"here"])
            await receiver.has(count)


async def test_what_was_not_completed_comes_again_under_the_same_key(topic: Topic) -> None:
    await topic.send(numbered(6))
    async with connected(topic) as adapter, receiving(adapter) as receiver:
        messages = await receiver.has(6)
        done, rest = messages[:3], messages[3:6]
        await adapter.complete(done)
    await adapter.disconnect()  # twice is fine
    async with connected(topic) as another, receiving(another, complete=True) as receiver:
        again = await receiver.has(3)
        assert {message.key for message in again} == {message.key for message in rest}
        # They are somebody else's by now: that is no error, and takes nothing away.
        await adapter.complete(rest)
        await adapter.abandon(rest)
        await topic.send([b"another"])
        assert (await receiver.has(4))[3].body == b"another"


async def test_what_is_abandoned_comes_again_at_once(topic: Topic) -> None:
    await topic.send(numbered(4))
    options = {"visibility_seconds": 600} if "visibility_seconds" in topic.options else {}
    async with connected(topic, **options) as adapter, receiving(adapter) as receiver:
        first = {message.key for message in await receiver.has(4)}
        messages, receiver.messages = receiver.messages, []
        await adapter.abandon(messages)
        again = await receiver.has(4)
        assert {message.key for message in again} == first
        await adapter.complete(again)
        await until(lambda: _lag_is(adapter, 0), "the end of the lag", LIMIT)


async def test_what_is_abandoned_comes_again_though_later_ones_are_completed(
    topic: Topic,
) -> None:
    await topic.send(numbered(8))
    # The service does not notice that nobody waits for its answer any more: what is put back may go
    # into it, and be invisible once more for so long.
    options = {"visibility_seconds": 5} if "visibility_seconds" in topic.options else {}
    async with connected(topic, batch_size=4, **options) as adapter:
        async with receiving(adapter) as receiver:
            messages = await receiver.has(8)
        first, second = messages[:4], messages[4:]
        await adapter.abandon(first)
        await adapter.complete(second)
    async with connected(topic) as adapter, receiving(adapter, complete=True) as receiver:
        wanted = {message.key for message in first}

        def all_there() -> bool:
            return wanted <= {message.key for message in receiver.messages}

        await until(all_there, "what was abandoned", LIMIT)


async def test_two_share_the_messages_and_none_is_missing(topic: Topic) -> None:
    async with (
        connected(topic, batch_size=5) as one,
        connected(topic, batch_size=5) as other,
        receiving(one, complete=True) as first,
        receiving(other, complete=True) as second,
    ):
        await topic.send(numbered(60))
        expected = set(numbered(60))

        def everything() -> bool:
            seen = {message.body for message in first.messages + second.messages}
            return seen == expected

        await until(everything, "the arrival of 60 messages", LIMIT)


async def test_what_a_consumer_left_behind_is_taken_over(topic: Topic) -> None:
    """A consumer that just vanishes: nothing is said to the broker."""
    await topic.send(numbered(4))
    lost = topic.adapter()
    await lost.connect()
    async with receiving(lost) as receiver:
        first = {message.key for message in await receiver.has(4)}
    if isinstance(lost, (RabbitmqAdapter, KafkaAdapter)):
        await lost.disconnect()  # these see that a connection ends
    async with connected(topic) as adapter, receiving(adapter, complete=True) as receiver:
        again = {message.key for message in await receiver.has(4)}
    assert again == first
    await lost.disconnect()


NOWHERE: dict[str, Callable[[int], QueueAdapter]] = {
    "kafka": lambda port: KafkaAdapter(topics=["t"], bootstrap_servers=f"127.0.0.1:{port}"),
    "redis": lambda port: RedisStreamsAdapter(streams=["t"], url=f"redis://127.0.0.1:{port}/0"),
    "nats": lambda port: NatsAdapter(stream="t", servers=f"nats://127.0.0.1:{port}"),
    "rabbitmq": lambda port: RabbitmqAdapter(queue="t", url=f"amqp://g:g@127.0.0.1:{port}/"),
    "sqs": lambda port: SqsAdapter(
        queue_url=f"http://127.0.0.1:{port}/1/t",
        endpoint_url=f"http://127.0.0.1:{port}",
        region="eu-west-1",
        access_key_id="test",
        secret_access_key="test",
    ),
}


@pytest.mark.parametrize("name", NOWHERE)
async def test_a_broker_that_is_away_is_an_error_soon(name: str) -> None:
    adapter = NOWHERE[name](free_port())
    began = time.monotonic()
    with pytest.raises(Exception, match=r"."):
        await adapter.connect()
    await adapter.disconnect()
    await adapter.disconnect()
    assert time.monotonic() - began < 30


async def _lag_is(adapter: QueueAdapter, expected: int) -> bool:
    return await adapter.lag() == expected
