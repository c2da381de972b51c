"""Brokers, each a real server: confirmed, in order for each key, with an id to deduplicate by."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.dispatchers.events.adapter import Message
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from tests.dispatchers.events.conftest import NAMES, Brokers
from tests.dispatchers.events.harness import TOPICS, Topic
from tests.publishing.conftest import PROCESSED, work
from tests.support.servers import free_port

KINDS = {"redis": "redis_streams"}
NUMBER = 60


def options_of(topic: Topic) -> dict[str, Any]:
    """The options of a destination that is this topic."""
    given = topic.options
    match type(topic).__name__:
        case "KafkaTopic":
            return {"bootstrap_servers": topic.url, "topic": topic.name}
        case "RedisTopic":
            return {"url": topic.url, "stream": topic.name}
        case "NatsTopic":
            return {"servers": topic.url, "subject": f"{topic.name}.{{type}}"}
        case "RabbitmqTopic":
            return {"url": topic.url, "routing_key": topic.name}
        case _:
            names = ("queue_url", "endpoint_url", "region", "access_key_id", "secret_access_key")
            return {name: given[name] for name in names}


@pytest.fixture(params=NAMES)
async def broker(
    request: pytest.FixtureRequest,
    brokers: Brokers,
) -> AsyncIterator[tuple[str, Topic]]:
    """Each broker with a topic of one's own, as the kind of destination that it is."""
    made = TOPICS[request.param](brokers.url(request.param))
    await made.open()
    yield KINDS.get(request.param, request.param), made
    await made.close()


async def received(topic: Topic, number: int) -> list[Message]:
    """What a consumer gets, in its order."""
    adapter = topic.adapter()
    found: list[Message] = []
    await adapter.connect()
    try:
        async with asyncio.timeout(30):
            async for batch in adapter.receive():
                found += batch
                await adapter.complete(batch)
                if len(found) >= number:
                    break
    finally:
        await adapter.disconnect()
    return found


async def deliveries(app: headrace.App) -> list[Job]:
    return (await app.list(JobFilter(tasks=("headrace.deliver",)), limit=1_000)).jobs


async def test_events_of_each_key_arrive_in_order(
    local: headrace.App, broker: tuple[str, Topic]
) -> None:
    kind, topic = broker

    @local.task(lane="step:{key}")
    async def step(ctx: headrace.Context, key: str, number: int) -> str:
        return ctx.publish(PROCESSED, {"document": key, "chunks": number}, key=key)

    await local.put_destination("log", kind, options_of(topic))
    keys = ["a", "b", "c"]
    jobs = await local.enqueue_many(
        step.job(key=keys[number % 3], number=number) for number in range(NUMBER)
    )
    await work(local)
    events = [msgspec.json.decode(each.body) for each in await received(topic, NUMBER)]
    assert {each["id"] for each in events} == {(await local.get(job.id)).result for job in jobs}
    for index, key in enumerate(keys):
        numbers = [each["data"]["chunks"] for each in events if each["key"] == key]
        assert numbers == list(range(index, NUMBER, 3))


async def test_one_that_is_down_gets_the_event_when_it_is_back(
    local: headrace.App, clock: Clock, broker: tuple[str, Topic], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "headrace")
    kind, topic = broker
    nobody = f"localhost:{free_port()}"
    wrong = {
        "kafka": {"bootstrap_servers": nobody},
        "rabbitmq": {"url": f"amqp://guest:very-hidden@{nobody}/"},
        "nats": {"servers": f"nats://ada:very-hidden@{nobody}"},
        "redis_streams": {"url": f"redis://:very-hidden@{nobody}/0"},
        "sqs": {"endpoint_url": f"http://{nobody}"},
    }
    options = {**options_of(topic), "timeout": 5}
    await local.put_destination("log", kind, {**options, **wrong[kind]})
    event_id = await local.publish(PROCESSED, {"document": "d1"}, key="k")
    await work(local)
    [job] = await deliveries(local)
    assert job.status is Status.SCHEDULED
    assert "very-hidden" not in f"{job.to_dict()} {caplog.text} {await local.destinations()}"
    # Corrected, it is sent to the right place by the next try.
    await local.put_destination("log", kind, options)
    clock.advance(6)
    await work(local)
    [job] = await deliveries(local)
    assert job.status is Status.COMPLETED, job.attempts
    [message] = await received(topic, 1)
    assert msgspec.json.decode(message.body)["id"] == event_id


async def test_what_the_broker_does_not_take_is_not_delivered(
    local: headrace.App, broker: tuple[str, Topic]
) -> None:
    kind, topic = broker
    if kind in ("kafka", "redis_streams"):
        return  # these make what is not there
    missing = {
        "nats": {"subject": "nobody.listens"},
        "rabbitmq": {"routing_key": "nobody"},
        "sqs": {"queue_url": f"{topic.url}/123456789012/nobody.fifo"},
    }
    await local.put_destination("log", kind, {**options_of(topic), **missing[kind]}, retries=0)
    await local.publish(PROCESSED, {"document": "d1"})
    await work(local)
    [job] = await deliveries(local)
    assert job.status is Status.FAILED, job.result


async def test_a_connection_serves_many_events_and_is_closed_with_the_app(
    local: headrace.App, broker: tuple[str, Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, topic = broker
    await local.put_destination("log", kind, options_of(topic))
    deliver = local._publishing.deliveries
    opened: list[Any] = []
    make = deliver._make

    def making(destination: Any) -> Any:
        opened.append(make(destination))
        return opened[-1]

    monkeypatch.setattr(deliver, "_make", making)
    for number in range(10):
        await local.publish(PROCESSED, {"document": f"d{number}"})
    await work(local)
    assert {job.status for job in await deliveries(local)} == {Status.COMPLETED}
    assert len(opened) == 1
    await local.close()
    assert deliver._open == {}
    await local.open()  # the fixture looks at it once more
