"""Messages that make no job are set aside with their reason, and hold up nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import RAW_LIMIT
from headrace.dispatchers.events.insert import insert_all
from headrace.dispatchers.events.message_parser import MessageParser, bounded
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, StorageFull
from headrace.model.job import Inserted, NewJob
from tests.dispatchers.events.harness import KafkaTopic, RedisTopic
from tests.dispatchers.events.scene import Scene, message, numbered
from tests.support.processes import until

# What is wrong, and a part of the reason that is told.
BAD: dict[bytes, str] = {
    b"": "has no body",
    b"not JSON": "JSON is malformed",
    b"\xff\xfe\x00binary": "JSON is malformed",
    b'{"handler_name": "work", "params": {"number": 1}': "truncated",
    b"[]": "Expected `object`, got `array`",
    b"null": "Expected `object`, got `null`",
    b"{}": "missing required field `handler_name`",
    b'{"handler_name": 7}': "handler_name",
    b'{"handler_name": null}': "handler_name",
    b'{"handler_name": "wrok", "params": {"number": 1}}': 'Registered: "work"',
    b'{"handler_name": "work"}': "number",
    b'{"handler_name": "work", "params": []}': "Expected `object`, got `array`",
    b'{"handler_name": "work", "params": null}': "Expected `object`, got `null`",
    b'{"handler_name": "work", "params": {"number": "one"}}': "Expected `int`, got `str`",
    b'{"handler_name": "work", "params": {"number": 1, "extra": 2}}': "extra",
    b'{"handler_name": "work", "params": {"number": 1}, "job_id": []}': "job_id",
    b'{"handler_name": "work", "params": {"number": 1}, "job_id": "\\u0007"}': "control",
    b'{"handler_name": "work", "params": {"number": 1, "text": "\xff"}}': "utf-8",
    b'{"handler_name": "work", "params": ' + b"[" * 20_000 + b"]" * 20_000 + b"}": "",
    b'{"handler_name": "scan", "params": {"platform": "' + b"p" * 600 + b'"}}': "lane",
    message("work", number=1, text="x" * 1_048_576): "limit is 1,048,576",
}


async def test_every_bad_message_is_set_aside_with_its_reason(
    stream: RedisTopic, scene: Scene
) -> None:
    mixed: list[bytes] = []
    for number, bad in enumerate(BAD):
        mixed += [message("work", number=number), bad]
    await stream.send(mixed)
    async with scene.dispatcher(stream.adapter()) as dispatcher:
        letters = await scene.has_letters(len(BAD))
        await scene.has_jobs(len(BAD))
        # They are counted and acknowledged when they are stored.
        await until(lambda: dispatcher.counts.set_aside == len(BAD), "all to be counted")
        await until(lambda: _lag_is(dispatcher, 0), "the end of the lag")
    assert await scene.numbers() == dict.fromkeys(range(len(BAD)), 1)
    assert {letter.raw for letter in letters} == set(BAD)
    for letter in letters:
        assert BAD[letter.raw] in letter.reason, letter.reason
        assert len(letter.reason) <= 2_000
        assert letter.topic == stream.name
        assert letter.id == f"redis:{stream.name}:{letter.offset}"
        assert not letter.cut


async def test_a_flood_of_bad_messages_delays_no_good_one(kafka: KafkaTopic, scene: Scene) -> None:
    await kafka.send([b"bad"] * 600 + numbered(20))
    async with scene.dispatcher(kafka.adapter()) as dispatcher:
        await scene.has_jobs(20)
        await until(lambda: dispatcher.counts.set_aside == 600, "600 dead letters")
        await until(lambda: _lag_is(dispatcher, 0), "the end of the lag")
    letters = await scene.has_letters(600)
    assert {(letter.partition, letter.offset) for letter in letters} == {
        (partition, offset) for partition in (0, 1) for offset in range(300)
    }


async def test_an_entry_without_the_field_is_set_aside_whole(
    stream: RedisTopic, scene: Scene
) -> None:
    await stream.client.xadd(stream.name, {"message": "hello", b"\xff": b"\xfe"})
    async with scene.dispatcher(stream.adapter()):
        [letter] = await scene.has_letters(1)
    assert 'has no field "body"' in letter.reason
    assert msgspec.json.decode(letter.raw)["message"] == "hello"


async def test_a_message_that_is_far_too_large_is_kept_in_part(scene: Scene) -> None:
    huge = Message(body=b"x" * (RAW_LIMIT + 10), topic="t", key="own:1")
    sorted_out = MessageParser(scene.app).parse([huge])
    await scene.letters.keep("own", sorted_out.refused)
    letter = await scene.letters.get("own:1")
    assert letter.cut
    assert (len(letter.raw), letter.size) == (RAW_LIMIT, RAW_LIMIT + 10)


class Picky:
    """An engine that cannot hold some of the jobs, as happens with what only a server refuses."""

    def __init__(self, engine: Engine, error: Exception) -> None:
        self._engine = engine
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def insert(self, jobs: Sequence[NewJob]) -> list[Inserted]:
        if any(b"13" in job.args for job in jobs):
            raise self._error
        return await self._engine.insert(jobs)


async def test_one_job_that_the_engine_cannot_hold_keeps_no_other_out(scene: Scene) -> None:
    messages = [
        Message(body=body, topic="t", key=f"own:{number}")
        for number, body in enumerate(numbered(40))
    ]
    batch = MessageParser(scene.app).parse(messages)
    picky: Any = Picky(scene.app.engine, ValueError("unfit"))
    created, unfit = await insert_all(picky, batch)
    assert created == 39
    assert [each.message.key for each in unfit] == ["own:13"]
    assert unfit[0].reason == "ValueError: unfit"


@pytest.mark.parametrize("error", [EngineUnavailable("away"), StorageFull("full")])
async def test_trouble_of_the_engine_is_no_fault_of_the_message(
    scene: Scene, error: Exception
) -> None:
    batch = MessageParser(scene.app).parse([Message(body=numbered(14)[13], topic="t", key="own:1")])
    picky: Any = Picky(scene.app.engine, error)
    with pytest.raises(type(error)):
        await insert_all(picky, batch)


@pytest.mark.parametrize(
    "key", ["kafka:t:0:1", "rabbitmq:" + "q" * 255 + ":" + "m" * 255, "redis:\x00:1-1", "한국:1"]
)
def test_a_key_of_any_broker_fits(key: str) -> None:
    made = bounded(key)
    assert len(made.encode()) <= 512
    assert made.isprintable()
    assert bounded(key) == made
    assert bounded(key + "x") != made


async def _lag_is(dispatcher: Any, expected: int) -> bool:
    return bool(await dispatcher.lag() == expected)
