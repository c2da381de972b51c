"""One door to each broker for tests: a topic of one's own, messages into it, adapters on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import aio_pika
import nats
import redis.asyncio as redis
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]

from headrace.dispatchers.events.adapter import QueueAdapter
from headrace.dispatchers.events.adapters.kafka import KafkaAdapter
from headrace.dispatchers.events.adapters.nats import NatsAdapter
from headrace.dispatchers.events.adapters.rabbitmq import RabbitmqAdapter
from headrace.dispatchers.events.adapters.redis_streams import RedisStreamsAdapter
from headrace.dispatchers.events.adapters.sqs import SqsAdapter


class Topic(ABC):
    """A topic, stream or queue that nobody else uses. `options` are those of its adapter.

    Times within which a broker misses a consumer are as short as it allows.
    """

    binary = True
    keyed_by_sender = False

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = f"t{uuid4().hex[:12]}"

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What an adapter has to be made with."""

    @abstractmethod
    def adapter(self, **options: Any) -> QueueAdapter:
        """An adapter on this topic."""

    @abstractmethod
    async def open(self) -> None:
        """Make the topic."""

    @abstractmethod
    async def send(self, bodies: Sequence[bytes]) -> None:
        """Send messages, in order where the broker keeps one."""

    @abstractmethod
    async def close(self) -> None:
        """Give connections back."""


class KafkaTopic(Topic):
    partitions = 2

    @property
    def options(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.url,
            "topics": [self.name],
            "group": f"group-{self.name}",
            "session_timeout_ms": 1_000,
            "heartbeat_interval_ms": 100,
        }

    def adapter(self, **options: Any) -> KafkaAdapter:
        return KafkaAdapter(**self.options | options)

    async def open(self) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.url)
        await admin.start()
        await admin.create_topics([NewTopic(self.name, self.partitions, 1)])
        await admin.close()
        self.producer = AIOKafkaProducer(
            bootstrap_servers=self.url, linger_ms=2, max_batch_size=262_144
        )
        await self.producer.start()

    async def send(self, bodies: Sequence[bytes]) -> None:
        waiting = []
        for number, body in enumerate(bodies):
            waiting.append(
                await self.producer.send(self.name, body, partition=number % self.partitions)
            )
        for each in waiting:
            await each

    async def close(self) -> None:
        await self.producer.stop()


class RedisTopic(Topic):
    @property
    def options(self) -> dict[str, Any]:
        return {"url": self.url, "streams": [self.name], "claim_after_seconds": 1.0}

    def adapter(self, **options: Any) -> RedisStreamsAdapter:
        return RedisStreamsAdapter(**self.options | options)

    async def open(self) -> None:
        self.client = redis.Redis.from_url(self.url)

    async def send(self, bodies: Sequence[bytes]) -> None:
        async with self.client.pipeline(transaction=False) as pipeline:
            for body in bodies:
                pipeline.xadd(self.name, {"body": body})
            await pipeline.execute()

    async def close(self) -> None:
        await self.client.delete(self.name)
        await self.client.aclose()


class NatsTopic(Topic):
    @property
    def options(self) -> dict[str, Any]:
        return {"servers": self.url, "stream": self.name, "ack_wait_seconds": 1.0}

    def adapter(self, **options: Any) -> NatsAdapter:
        return NatsAdapter(**self.options | options)

    async def open(self) -> None:
        self.client = await nats.connect(self.url)
        await self.client.jetstream().add_stream(name=self.name, subjects=[f"{self.name}.>"])

    async def send(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            await self.client.jetstream().publish(f"{self.name}.jobs", body)

    async def close(self) -> None:
        await self.client.jetstream().delete_stream(self.name)
        await self.client.close()


class RabbitmqTopic(Topic):
    keyed_by_sender = True

    @property
    def options(self) -> dict[str, Any]:
        return {"url": self.url, "queue": self.name}

    def adapter(self, **options: Any) -> RabbitmqAdapter:
        return RabbitmqAdapter(**self.options | options)

    async def open(self) -> None:
        self.connection = await aio_pika.connect(self.url)
        self.channel = await self.connection.channel()
        self.queue = await self.channel.declare_queue(self.name, durable=True)

    async def send(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            await self.channel.default_exchange.publish(
                aio_pika.Message(body, message_id=str(uuid4())), routing_key=self.name
            )

    async def close(self) -> None:
        await self.queue.delete(if_unused=False, if_empty=False)
        await self.connection.close()


class SqsTopic(Topic):
    binary = False  # its messages are text

    @property
    def options(self) -> dict[str, Any]:
        return {
            **self._access,
            "queue_url": self.queue_url,
            "wait_seconds": 1,
            "visibility_seconds": 1,
        }

    @property
    def _access(self) -> dict[str, Any]:
        return {
            "endpoint_url": self.url,
            "region": "eu-west-1",
            "access_key_id": "test",
            "secret_access_key": "test",
        }

    def adapter(self, **options: Any) -> SqsAdapter:
        return SqsAdapter(**self.options | options)

    async def open(self) -> None:
        access = {
            "endpoint_url": self.url,
            "region_name": "eu-west-1",
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }
        self.context = get_session().create_client("sqs", **access)
        self.client = await self.context.__aenter__()
        made = await self.client.create_queue(
            QueueName=f"{self.name}.fifo",
            Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "false"},
        )
        self.queue_url = made["QueueUrl"]

    async def send(self, bodies: Sequence[bytes]) -> None:
        for start in range(0, len(bodies), 10):
            entries = [
                {
                    "Id": str(number),
                    "MessageBody": body.decode("utf-8", "backslashreplace"),
                    "MessageGroupId": str(number),
                    "MessageDeduplicationId": str(uuid4()),
                }
                for number, body in enumerate(bodies[start : start + 10])
            ]
            await self.client.send_message_batch(QueueUrl=self.queue_url, Entries=entries)

    async def close(self) -> None:
        await self.client.delete_queue(QueueUrl=self.queue_url)
        await self.context.__aexit__(None, None, None)


TOPICS: dict[str, type[Topic]] = {
    "kafka": KafkaTopic,
    "redis": RedisTopic,
    "nats": NatsTopic,
    "rabbitmq": RabbitmqTopic,
    "sqs": SqsTopic,
}
