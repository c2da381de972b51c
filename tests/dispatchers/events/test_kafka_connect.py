"""Kafka: a topic that is misspelt, brokers that refuse, and records of the oldest format."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

from headrace.dispatchers.events.adapters.kafka import KafkaAdapter
from headrace.errors import InvalidInput
from tests.dispatchers.events.harness import KafkaTopic
from tests.dispatchers.events.scene import Scene, numbered
from tests.support.processes import until
from tests.support.servers import free_port
from tests.support.tls import Authority, tls_door


async def topics_of(kafka: KafkaTopic) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    try:
        return set(await admin.list_topics())
    finally:
        await admin.close()


async def test_a_misspelt_topic_is_named_and_not_created(kafka: KafkaTopic, scene: Scene) -> None:
    misspelt = f"{kafka.name}x"
    adapter = kafka.adapter(topics=[misspelt])
    with pytest.raises(InvalidInput, match=f'did you mean "{kafka.name}"'):
        await adapter.connect()
    await adapter.disconnect()
    assert misspelt not in await topics_of(kafka)
    assert kafka.name in await topics_of(kafka)
    # A dispatcher says so, and goes on as soon as the topic is there.
    late = KafkaTopic(kafka.url)
    async with scene.dispatcher(late.adapter()) as dispatcher:
        await until(lambda: dispatcher.receiver.failures >= 1, "trouble")
        assert not dispatcher.receiver.connected
        await late.open()
        await late.send(numbered(3))
        await scene.has_jobs(3)
    await late.close()


async def test_a_certificate_that_is_not_trusted_is_the_reason(
    kafka: KafkaTopic, tmp_path: Path
) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    port = int(kafka.url.rpartition(":")[2])
    async with tls_door(port, theirs.issue("127.0.0.1")) as door:
        adapter = kafka.adapter(
            bootstrap_servers=f"127.0.0.1:{door}",
            security_protocol="SSL",
            ssl_ca_file=str(ours.file),
        )
        with pytest.raises(ConnectionError) as refused:
            await adapter.connect()
    assert "certificate verify failed" in str(refused.value)
    assert "ssl_ca_file" in str(refused.value)


async def test_a_refused_sign_in_is_the_reason(kafka: KafkaTopic) -> None:
    adapter = kafka.adapter(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="ada",
        sasl_password="hunter2-secret",
    )
    with pytest.raises(ConnectionError) as refused:
        await adapter.connect()
    assert "Unable to bootstrap" not in str(refused.value)
    assert kafka.url in str(refused.value)
    assert "hunter2" not in str(refused.value)


async def test_a_broker_that_is_not_there_is_the_reason() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match=address):
        await KafkaAdapter(topics=["t"], bootstrap_servers=address).connect()


@pytest.mark.parametrize(("timestamp", "sent_at"), [(None, None), (-1, None), (1_500, 1.5)])
def test_a_record_without_a_time_is_a_message_without_one(
    timestamp: int | None, sent_at: float | None
) -> None:
    adapter = KafkaAdapter(topics=["t"])
    record: Any = SimpleNamespace(value=b"{}", offset=7, timestamp=timestamp, headers=())
    [message] = adapter._hand_out({TopicPartition("t", 0): [record]})
    assert message.sent_at == sent_at
