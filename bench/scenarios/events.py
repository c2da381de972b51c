"""One event dispatcher beside a bare consumer, and dispatchers that are killed.

All read from a local broker with eight partitions. The bare consumers decode every message and do
nothing else; the dispatcher checks it, stores a job in PostgreSQL with fsync, and commits the
offset. They take turns, and the best of each counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from uuid import uuid4

import asyncpg
import msgspec
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from tests.dispatchers.events.harness import KafkaTopic
from tests.dispatchers.events.ordeal import Outcome, ordeal
from tests.dispatchers.events.scene import Scene, numbered
from tests.support.brokers import KafkaServer
from tests.support.processes import until

import headrace
from bench.figures import Finding
from bench.scenarios.stage import Stage
from headrace.dispatchers.events.dispatcher import QueueDispatcher

MESSAGES = 100_000
BAD = 100
KILLS = 8
PARTITIONS = 8
CHUNK = 10_000
RUNS = 3
SESSION = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 300}
SHARE = 1 / 3
CONNECTIONS = 2
LIMIT_SECONDS = 120.0
COUNT = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def events(stage: Stage) -> Iterator[Finding]:
    """Rates, connections, and what is lost."""
    if stage.engine != "postgres":
        return
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    broker = KafkaServer()
    try:
        broker.start()
        yield from _rates(stage, broker)
        with stage.fresh():
            outcome = asyncio.run(_ordeal(stage, broker))
        yield _survived(outcome)
    finally:
        broker.destroy()


class Rates:
    """A topic full of messages, and ways to read it."""

    def __init__(self, stage: Stage, topic: KafkaTopic) -> None:
        self.stage = stage
        self.topic = topic
        self.count = stage.jobs(MESSAGES)
        self.connections = 0

    async def fill(self) -> None:
        """Put the messages into the topic."""
        await self.topic.open()
        for start in range(0, self.count, CHUNK):
            await self.topic.send(numbered(min(CHUNK, self.count - start), start=start))
        await self.topic.close()

    async def each(self) -> float:
        """Messages a second of a consumer as its documentation shows it."""
        decode = msgspec.json.Decoder().decode
        async with self._consumer() as consumer:
            began, left = time.perf_counter(), self.count
            async for message in consumer:
                decode(message.value)
                left -= 1
                if not left:
                    break
            return self.count / (time.perf_counter() - began)

    async def many(self) -> float:
        """Messages a second of a consumer that takes them by the thousand."""
        decode = msgspec.json.Decoder().decode
        async with self._consumer() as consumer:
            began, left = time.perf_counter(), self.count
            while left:
                found = await consumer.getmany(timeout_ms=1_000, max_records=1_000)
                for messages in found.values():
                    for message in messages:
                        decode(message.value)
                    left -= len(messages)
            return self.count / (time.perf_counter() - began)

    async def dispatcher(self) -> float:
        """Jobs a second that one dispatcher stores."""
        app = headrace.App(f"{self.stage.arena.url}?schema=b{uuid4().hex[:8]}")

        @app.task
        async def work(number: int) -> None: ...

        async with app, self._counting():
            dispatcher = QueueDispatcher(app, self.topic.adapter(group=uuid4().hex, **SESSION))
            async with dispatcher:
                await until(lambda: dispatcher.receiver.connected, "the join", LIMIT_SECONDS)
                began = time.perf_counter()
                await until(
                    lambda: dispatcher.counts.stored == self.count, "the last job", LIMIT_SECONDS
                )
                return self.count / (time.perf_counter() - began)

    @contextlib.asynccontextmanager
    async def _counting(self) -> AsyncIterator[None]:
        """Ask the server again and again how many connections it has besides this one."""
        connection = await asyncpg.connect(self.stage.arena.url)

        async def count() -> None:
            while True:
                found = await connection.fetchval(COUNT)
                self.connections = max(self.connections, found)
                await asyncio.sleep(0.1)

        counting = asyncio.create_task(count())
        try:
            yield
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
            await connection.close()

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            self.topic.name,
            bootstrap_servers=self.topic.url,
            group_id=uuid4().hex,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            **SESSION,
        )


def _rates(stage: Stage, broker: KafkaServer) -> Iterator[Finding]:
    rates = Rates(stage, _topic(broker))
    asyncio.run(rates.fill())
    kinds: list[Callable[[], Awaitable[float]]] = [rates.each, rates.many, rates.dispatcher]
    best = [0.0] * len(kinds)
    for _ in range(stage.runs(RUNS)):
        for number, kind in enumerate(kinds):
            with stage.fresh():
                best[number] = max(best[number], asyncio.run(_awaited(kind)))
    each, many, ours = best
    case = f"one dispatcher, Kafka, {rates.count:,} messages"
    yield Finding(
        scenario="events",
        engine=stage.engine,
        case=case,
        value=ours,
        unit="jobs/s",
        reference=each,
        ratio=ours / each,
        bar="≥ a third of a bare consumer",
        met=ours / each >= SHARE,
        note="the bare consumer takes message by message and decodes it",
    )
    yield Finding(
        scenario="events",
        engine=stage.engine,
        case=case,
        value=ours,
        unit="jobs/s",
        reference=many,
        ratio=ours / many,
        note="the bare consumer takes a thousand at a time and decodes them",
    )
    yield Finding(
        scenario="events",
        engine=stage.engine,
        case="connections of one dispatcher, counted on the server",
        value=rates.connections,
        unit="connections",
        bar=f"≤ {CONNECTIONS}",
        met=rates.connections <= CONNECTIONS,
    )


async def _ordeal(stage: Stage, broker: KafkaServer) -> Outcome:
    topic = _topic(broker)
    await topic.open()
    scene = Scene(stage.arena.url, stage.arena.folder)
    async with scene.app:
        outcome = await ordeal(
            scene,
            topic,
            stage.arena.folder,
            messages=stage.jobs(MESSAGES),
            bad=BAD,
            kills=KILLS,
        )
    await topic.close()
    return outcome


def _survived(outcome: Outcome) -> Finding:
    return Finding(
        scenario="events",
        engine="postgres",
        case=f"{outcome.messages:,} messages, {outcome.killed} dispatchers killed",
        value=outcome.twice + outcome.missing,
        unit="jobs twice or missing",
        bar="0, and bad messages set aside",
        met=not outcome.twice and not outcome.missing and outcome.letters == BAD,
        note=(
            f"{outcome.jobs:,} jobs, {outcome.letters} of {BAD} bad messages set aside, "
            f"partitions given {outcome.assignments} times, {outcome.seconds:.0f} s"
        ),
    )


def _topic(broker: KafkaServer) -> KafkaTopic:
    topic = KafkaTopic(broker.url)
    topic.partitions = PARTITIONS
    return topic


async def _awaited(kind: Callable[[], Awaitable[float]]) -> float:
    return await kind()
