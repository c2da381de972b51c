"""Apache Kafka, and what speaks its protocol, as one member of a consumer group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Literal

from headrace.dispatchers.events.adapter import Message, QueueAdapter, driver_for
from headrace.dispatchers.events.adapters.kafka_connect import SIGN_IN, check_topics
from headrace.errors import InvalidSetting

with driver_for("Kafka", "kafka"):
    from aiokafka import (  # type: ignore[import-untyped]
        AIOKafkaConsumer,
        ConsumerRebalanceListener,
        TopicPartition,
    )
    from aiokafka.errors import (  # type: ignore[import-untyped]
        CommitFailedError,
        IllegalStateError,
        KafkaError,
    )

log = logging.getLogger("headrace.events")

# A dispatcher that waits for its engine asks for nothing, for as long as that takes, and is a
# member all the same: its heartbeats go on. The driver would leave the group after five minutes.
NEVER_ASKED_MS = 2**31 - 1
ASK_MS = 1_000
COMMIT_SECONDS = 10.0
CONNECT_SECONDS = 20.0
# At most so many at once: while they are looked at nothing else is done.
PIECE = 500
# With more partitions than this, looking for one after the other takes longer than it saves.
MANY = 64
NOTHING = (0, 0)

# Topic and partition. The driver's own tuple is equal to it, and slower to make.
Place = tuple[str, Any]
Records = dict[TopicPartition, list[Any]]
LEAVE_SECONDS = 5.0
# The settings that say how to reach the brokers.
REACHED_BY = ("bootstrap_servers", "client_id", *SIGN_IN)


class KafkaAdapter(QueueAdapter):
    """Takes the partitions that the group gives it. Offsets are committed by `complete` alone.

    Before a partition is given up, what was handed out from it may be completed for half of the
    session time-out, so that the next owner starts after it.
    """

    name = "kafka"

    def __init__(
        self,
        *,
        topics: list[str],
        bootstrap_servers: str | list[str] = "localhost:9092",
        group: str = "headrace",
        batch_size: int = 2_000,
        auto_offset_reset: Literal["earliest", "latest"] = "earliest",
        isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed",
        session_timeout_ms: int = 10_000,
        heartbeat_interval_ms: int = 3_000,
        client_id: str = "headrace",
        security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT",
        sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN",
        sasl_username: str | None = None,
        sasl_password: str | None = None,
        ssl_ca_file: str | None = None,
        ssl_certificate_file: str | None = None,
        ssl_key_file: str | None = None,
    ) -> None:
        if not topics:
            raise InvalidSetting("topics must name at least one topic, got none")
        self._topics = topics
        self._piece = min(-(-batch_size // 2), PIECE)
        self._patience = session_timeout_ms / 2_000
        self._tls = (
            (ssl_ca_file, ssl_certificate_file, ssl_key_file)
            if "SSL" in security_protocol
            else None
        )
        self._settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap_servers,
            "group_id": group,
            "client_id": client_id,
            "enable_auto_commit": False,
            "auto_offset_reset": auto_offset_reset,
            "isolation_level": isolation_level,
            "session_timeout_ms": session_timeout_ms,
            "heartbeat_interval_ms": heartbeat_interval_ms,
            "max_poll_interval_ms": NEVER_ASKED_MS,
            "security_protocol": security_protocol,
            "sasl_mechanism": sasl_mechanism,
            "sasl_plain_username": sasl_username,
            "sasl_plain_password": sasl_password,
        }
        self._consumer: AIOKafkaConsumer | None = None
        # Counts assignments: what was handed out under an earlier one may be somebody else's now.
        self._epoch = 0
        # Counts batches. What came from a partition in this batch or before was abandoned in part,
        # so it comes again from that offset on.
        self._batch = 0
        self._void: dict[Place, tuple[int, int]] = {}
        self._out: dict[Place, int] = {}
        self._settled = asyncio.Event()

    async def connect(self) -> None:
        """Join the group; answers when partitions have been shared out."""
        context = None if self._tls is None else tls_context(*self._tls)
        reached = {name: self._settings[name] for name in REACHED_BY} | {"ssl_context": context}
        async with asyncio.timeout(CONNECT_SECONDS):
            await check_topics(reached, self._topics)
        consumer = AIOKafkaConsumer(**self._settings, ssl_context=context)
        consumer.subscribe(self._topics, listener=_Rebalance(self))
        self._consumer = consumer
        # A join waits for the other members, but the driver would wait for ever.
        async with asyncio.timeout(CONNECT_SECONDS + 6 * self._patience):
            await consumer.start()

    async def disconnect(self) -> None:
        """Leave the group, so that others need not wait for the session to lapse."""
        consumer, self._consumer = self._consumer, None
        self.forget()
        if consumer is not None:
            async with asyncio.timeout(LEAVE_SECONDS):
                await consumer.stop()

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        """Records of all partitions, of each in order."""
        consumer = self._connected()
        served: set[TopicPartition] = set()
        while True:
            found = await self._next(consumer, served)
            served |= found.keys()
            if found:
                # No pause between the two: a partition must not be taken away unseen.
                yield self._hand_out(found)

    async def _next(self, consumer: AIOKafkaConsumer, served: set[TopicPartition]) -> Records:
        """Records of those partitions whose turn it is, and nothing if none come for a while.

        The driver would empty one partition before it comes to the next. In turns, a long one does
        not hold up the others, and several can be stored at the same time.
        """
        others = [place for place in consumer.assignment() if place not in served]
        if served and 0 < len(others) <= MANY:
            found: Records = await consumer.getmany(*others, max_records=self._piece)
            if found:
                return found
        served.clear()
        found = await consumer.getmany(timeout_ms=ASK_MS, max_records=self._piece)
        return found

    async def complete(self, messages: Sequence[Message]) -> None:
        """Commit the offsets after these."""
        now = self._epoch
        offsets: dict[Place, int] = {}
        counts: Counter[Place] = Counter()
        numbers = Counter(message.receipt for message in messages)
        # Of each receipt the last one counts.
        lasts: dict[Any, Any] = {message.receipt: message.offset for message in messages}
        for (place, epoch, batch), last in lasts.items():
            # What will come again anyway must not be committed: there are others before it.
            if epoch == now and batch > self._void.get(place, NOTHING)[0]:
                offsets[place] = max(offsets.get(place, 0), last + 1)
                counts[place] += numbers[place, epoch, batch]
        if offsets and self._consumer is not None:
            try:
                async with asyncio.timeout(COMMIT_SECONDS):
                    await self._consumer.commit(
                        {TopicPartition(*place): offset for place, offset in offsets.items()}
                    )
            except (CommitFailedError, IllegalStateError) as error:
                log.info("Partitions went to others before they were committed: %s", error)
        if now == self._epoch:
            for place, count in counts.items():
                self._out[place] = self._out.get(place, 0) - count
        self._tell_settled()

    async def abandon(self, messages: Sequence[Message]) -> None:
        """Go back to the first of these. What was handed out after it will come again."""
        firsts: dict[Place, int] = {}
        for message in messages:
            place, epoch, batch = message.receipt
            offset: Any = message.offset
            void, back_to = self._void.get(place, NOTHING)
            comes_again = batch <= void and offset >= back_to
            if epoch == self._epoch and not comes_again:
                firsts[place] = min(firsts.get(place, offset), offset)
        for place, offset in firsts.items():
            if self._consumer is not None:
                with contextlib.suppress(IllegalStateError):
                    self._consumer.seek(TopicPartition(*place), offset)
                self._void[place] = (self._batch, offset)
                self._out.pop(place, None)
        self._tell_settled()

    async def lag(self) -> int | None:
        """Over the partitions that are ours: what was handed out and is not completed, and from
        there to the end. Markers and aborted records have offsets as well, but what was handed out
        is counted, so those before it are not.

        The end is where the last fetch saw it. What the broker says when asked is taken if it is
        further on: a paused consumer fetches nothing, and not every broker counts right.
        """
        consumer = self._consumer
        if consumer is None:
            return None
        try:
            async with asyncio.timeout(ASK_MS / 1_000):
                places = list(consumer.assignment())
                ends = await consumer.end_offsets(places) if places else {}
                total = 0
                for place in places:
                    end = max(consumer.highwater(place) or 0, ends.get(place, 0))
                    ahead = max(0, end - int(await consumer.position(place)))
                    total += ahead + self._out.get(place, 0)
        except (KafkaError, TimeoutError):
            return None
        return total

    def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise ConnectionError("not connected to Kafka; call connect() first")
        return self._consumer

    def _hand_out(self, found: Records) -> list[Message]:
        batch = []
        self._batch += 1
        for place, records in found.items():
            receipt = (place, self._epoch, self._batch)
            self._out[place] = self._out.get(place, 0) + len(records)
            topic, partition = place
            prefix = f"kafka:{topic}:{partition}:"
            batch += [
                Message(
                    body=record.value or b"",
                    topic=topic,
                    key=f"{prefix}{record.offset}",
                    partition=partition,
                    offset=record.offset,
                    # In the oldest format records have none.
                    sent_at=record.timestamp / 1_000 if (record.timestamp or 0) > 0 else None,
                    receipt=receipt,
                    headers=dict(record.headers) if record.headers else None,
                )
                for record in records
            ]
        return batch

    def _tell_settled(self) -> None:
        if not any(self._out.values()):
            self._settled.set()

    def forget(self) -> None:
        """What was handed out until now is no longer ours to complete."""
        self._epoch += 1
        self._void.clear()
        self._out.clear()
        self._settled.set()

    async def settle(self) -> None:
        """Wait until what was handed out is completed, but not so long that the group waits."""
        if any(self._out.values()):
            self._settled.clear()
            try:
                async with asyncio.timeout(self._patience):
                    await self._settled.wait()
            except TimeoutError:
                log.info("Partitions are given up with messages in hand; others will see them")


class _Rebalance(ConsumerRebalanceListener):  # type: ignore[misc]
    """Called by the driver when the group shares out its partitions anew."""

    def __init__(self, adapter: KafkaAdapter) -> None:
        self._adapter = adapter

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        await self._adapter.settle()
        self._adapter.forget()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        log.info(
            "Kafka gave us %s", ", ".join(f"{t}/{p}" for t, p in sorted(assigned)) or "nothing"
        )


def tls_context(
    ca_file: str | None, certificate_file: str | None, key_file: str | None
) -> ssl.SSLContext:
    """How to know the broker, and how to be known to it. The system's authorities by default."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if certificate_file is not None:
            context.load_cert_chain(certificate_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting(f"the TLS files cannot be used: {error}") from None
    return context
