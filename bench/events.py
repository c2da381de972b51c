"""`python -m bench.events`: one event dispatcher beside a bare consumer of the same messages.

Both read the same topic of eight partitions from a local broker, in turn, several times over; the
best of each counts. The bare consumer decodes every message and does nothing else. The dispatcher
checks it, stores a job in PostgreSQL with fsync, and commits the offset.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from uuid import uuid4

import msgspec
import psutil
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from tests.dispatchers.events.harness import KafkaTopic
from tests.support.brokers import KafkaServer
from tests.support.processes import until
from tests.support.servers import PostgresServer, postgres_binaries

import headrace
from headrace.dispatchers.events import QueueDispatcher

PARTITIONS = 8
CHUNK = 10_000
SESSION = {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 300}
GOAL = 1 / 3
LIMIT = 120.0


class EventBench:
    """A broker with messages in it, and a server to store jobs on."""

    def __init__(self, topic: KafkaTopic, server: PostgresServer, count: int) -> None:
        self.topic = topic
        self.server = server
        self.count = count
        self.connections = 0

    async def fill(self) -> None:
        """Put the messages into the topic."""
        await self.topic.open()
        for start in range(0, self.count, CHUNK):
            await self.topic.send(
                [
                    msgspec.json.encode({"handler_name": "work", "params": {"number": number}})
                    for number in range(start, min(start + CHUNK, self.count))
                ]
            )
        await self.topic.close()

    async def bare_loop(self) -> float:
        """Messages a second of a consumer as its documentation shows it."""
        async with self._consumer() as consumer:
            decode = msgspec.json.Decoder().decode
            began, left = time.perf_counter(), self.count
            async for message in consumer:
                decode(message.value)
                left -= 1
                if not left:
                    break
            return self.count / (time.perf_counter() - began)

    async def bare_batches(self) -> float:
        """Messages a second of a consumer that takes them by the thousand."""
        async with self._consumer() as consumer:
            decode = msgspec.json.Decoder().decode
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
        app = headrace.App(f"{self.server.url}?schema=b{uuid4().hex[:8]}")

        @app.task
        async def work(number: int) -> None: ...

        async with app:
            adapter = self.topic.adapter(group=uuid4().hex, **SESSION)
            dispatcher = QueueDispatcher(app, adapter)
            await dispatcher.start()
            await until(lambda: dispatcher.reader.connected, "the join", LIMIT)
            began = time.perf_counter()
            await until(lambda: dispatcher.counts.stored == self.count, "the last job", LIMIT)
            rate = self.count / (time.perf_counter() - began)
            self._count_connections()
            await dispatcher.stop()
            assert dispatcher.counts.duplicates == 0
        return rate

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            self.topic.name,
            bootstrap_servers=self.topic.url,
            group_id=uuid4().hex,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            **SESSION,
        )

    def _count_connections(self) -> None:
        held = [
            each
            for each in psutil.Process().net_connections("tcp")
            if each.raddr and each.raddr.port == self.server.port
        ]
        self.connections = max(self.connections, len(held))


async def measure(count: int, rounds: int) -> int:
    """Measure, print, and answer the exit code: 0 if the goal is reached."""
    broker, server = KafkaServer(), PostgresServer(postgres_binaries()["postgres"], durable=True)
    try:
        broker.start()
        server.start()
        topic = KafkaTopic(broker.url)
        topic.partitions = PARTITIONS
        bench = EventBench(topic, server, count)
        await bench.fill()
        kinds: dict[str, Callable[[], Awaitable[float]]] = {
            "bare consumer, message by message": bench.bare_loop,
            "bare consumer, a thousand at a time": bench.bare_batches,
            "dispatcher into PostgreSQL": bench.dispatcher,
        }
        best = dict.fromkeys(kinds, 0.0)
        for number in range(rounds):
            for kind, run in kinds.items():
                rate = await run()
                best[kind] = max(best[kind], rate)
                print(f"round {number + 1}: {kind:36} {rate:10,.0f}/s", file=sys.stderr)
    finally:
        broker.destroy()
        server.destroy()
    loop, batches, dispatcher = best.values()
    for kind, rate in best.items():
        print(f"{kind:36} {rate:10,.0f}/s")
    print(f"dispatcher / message by message      {dispatcher / loop:10.2f}")
    print(f"dispatcher / a thousand at a time    {dispatcher / batches:10.2f}")
    print(f"engine connections                   {bench.connections:10}")
    return 0 if dispatcher / loop >= GOAL and bench.connections <= 2 else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.events", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="messages")
    parser.add_argument("--rounds", type=int, default=3, help="best of so many")
    options = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    return asyncio.run(measure(options.count, options.rounds))


if __name__ == "__main__":
    sys.exit(main())
