"""What is stored beside jobs: the arguments of schedules, and messages that made no job."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import msgspec
import pytest

import headrace
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.dispatcher import QueueDispatcher
from headrace.dispatchers.events.message_parser import MessageParser
from headrace.model.sealed import key_of_args
from tests.encryption.conftest import BOTH, K2, Make, Worker
from tests.support import example_adapter

MARKER = "4111-1111"


async def stored_schedule(app: headrace.App, name: str = "nightly") -> str:
    record = await app.engine.record_get("schedule", name)
    assert record is not None
    return record.body.decode()


async def test_the_arguments_of_a_schedule(url: str, make: Make, worker: Worker) -> None:
    app = make(url)
    await app.put_schedule("nightly", "0 3 * * *", "pay", params={"card": MARKER})
    assert MARKER not in await stored_schedule(app)
    view = await app.get_schedule("nightly")
    assert view.params["$sealed"]["key"] == "k1"
    job = await app.trigger_schedule("nightly")
    assert job.args == {"card": MARKER}
    await worker(app).run_until_idle()
    assert (await app.result(job.id))["card"] == MARKER
    # Without keys it can be turned off, and not be triggered.
    other = make(url, None)
    assert not (await other.enable_schedule("nightly", False)).enabled
    with pytest.raises(headrace.MissingEncryptionKey, match='params are sealed with key "k1"'):
        await other.trigger_schedule("nightly")
    assert (await app.trigger_schedule("nightly")).args == {"card": MARKER}


async def test_schedules_that_are_declared_in_code(
    here: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """A restart changes nothing, although what is stored never looks the same."""
    app = make(here)
    await app.open()
    app.add_schedule("pay", "0 3 * * *", name="nightly", params={"card": MARKER})
    assert (await app.get_schedule("nightly")).params == {"$sealed": {"key": None}}
    await CronDispatcher(app).sync()
    before = await stored_schedule(app)
    assert MARKER not in before
    await app.enable_schedule("nightly", False)
    disabled = await stored_schedule(app)
    again = make(here, BOTH)
    again.add_schedule("pay", "0 3 * * *", name="nightly", params={"card": MARKER})
    await CronDispatcher(again).sync()
    assert await stored_schedule(app) == disabled
    # Where there are no keys, it is left out, and said.
    other = make(here + "2", None)
    other.add_schedule("pay", "0 3 * * *", name="nightly", params={"card": MARKER})
    other.add_schedule("plain", "0 3 * * *", name="other", params={"text": "seen"})
    await CronDispatcher(other).sync()
    assert await other.engine.record_get("schedule", "nightly") is None
    assert "seen" in await stored_schedule(other, "other")
    assert "HEADRACE_ENCRYPTION_KEYS" in caplog.text
    assert MARKER not in caplog.text


def message(**fields: object) -> Message:
    body = json.dumps({"handler_name": "pay", "params": {"card": MARKER}} | fields).encode()
    return Message(body=body, topic="orders", key="orders:0:7")


async def test_messages_make_sealed_jobs(here: str, make: Make) -> None:
    app = make(here)
    parsed = MessageParser(app).parse([message(), message()])
    assert not parsed.refused
    assert [key_of_args(job.args) for job in parsed.jobs] == ["k1", "k1"]
    jobs = await app.enqueue_many(msgspec.structs.replace(job, key=None) for job in parsed.jobs)
    assert [job.args for job in jobs] == [{"card": MARKER}] * 2


async def test_messages_that_made_no_job(
    url: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    app = make(url)
    await app.open()
    letters = DeadLetters(app)
    bad = message(params={"card": MARKER, "amount": "many"})
    parsed = MessageParser(app).parse([bad])
    assert MARKER not in parsed.refused[0].reason
    await letters.keep("kafka", parsed.refused)
    [record] = await app.engine.record_list("dead-letter")
    assert MARKER.encode() not in record.body
    letter = await app.dead_letter(record.key)
    assert b'"key":"k1"' in letter.raw
    assert MARKER.encode() not in letter.raw
    with pytest.raises(headrace.InvalidArguments, match="amount"):
        await app.replay_dead_letter(record.key)
    # The task takes it by now.
    del app.tasks["pay"]

    @app.task("pay", encrypt=True)
    async def pay(card: str, amount: str) -> None: ...

    with pytest.raises(headrace.MissingEncryptionKey, match="is sealed"):
        await make(url, None).replay_dead_letter(record.key)
    replayed = await app.replay_dead_letter(record.key)
    assert (await app.get(replayed.job_id)).args == {"card": MARKER, "amount": "many"}


async def test_other_messages_stay_as_they_came(here: str, make: Make) -> None:
    app = make(here)
    await app.open()
    unknown = Message(body=b'{"handler_name":"nobody","params":{}}', topic="t", key="t:0:1")
    unreadable = Message(body=b"no json", topic="t", key="t:0:2")
    await DeadLetters(app).keep("kafka", MessageParser(app).parse([unknown, unreadable]).refused)
    raws = [
        (await app.dead_letter(each.id)).raw for each in (await app.dead_letters()).dead_letters
    ]
    assert raws == [unknown.body, unreadable.body]
    # Unless everything is encrypted: what it asks for may be anything.
    every = make(here + "2", encrypt_all=True)
    await every.open()
    parsed = MessageParser(every).parse([unreadable])
    assert "no json" not in parsed.refused[0].reason
    await DeadLetters(every).keep("kafka", parsed.refused)
    [record] = await every.engine.record_list("dead-letter")
    assert b"no json" not in record.body


async def test_dead_letters_are_opened_where_the_settings_say_so(here: str, make: Make) -> None:
    app, shows, other = make(here), make(here, show_sealed=True), make(here, f"k2:{K2}")
    await app.open()
    bad = message(params={"card": MARKER, "amount": "many"})
    await DeadLetters(app).keep("kafka", MessageParser(app).parse([bad]).refused)
    assert (await shows.dead_letter("orders:0:7")).raw == bad.body
    assert MARKER.encode() not in (await other.dead_letter("orders:0:7")).raw


async def test_a_dispatcher_starts_only_with_keys_that_can_be_used(
    here: str, make: Make, tmp_path: Path
) -> None:
    """Without them it would set every message for an encrypted task aside."""
    adapter = example_adapter.load()(folder=str(tmp_path))
    with pytest.raises(headrace.MissingEncryptionKey, match='task "pay" is encrypted'):
        await QueueDispatcher(make(here, None), adapter).start()
    with pytest.raises(headrace.InvalidSetting, match='key "k1" must be 32 bytes'):
        await QueueDispatcher(make(here, "k1:tooshort"), adapter).start()
    dispatcher = QueueDispatcher(make(here), adapter)
    await dispatcher.start()
    assert dispatcher.running
    await dispatcher.stop()
