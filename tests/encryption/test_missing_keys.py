"""A process without the key: a clear error, no attempt is spent, and nobody spins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import headrace
from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.status import Status
from tests.encryption.conftest import BOTH, K1, K2, Make, Worker, new_key, until

Log = pytest.LogCaptureFixture
REMEDY = "HEADRACE_ENCRYPTION_KEYS"
# For how long a worker is watched that has nothing to do.
WATCHED = 1.5


async def claims_while_idle(orchestrator: headrace.JobOrchestrator) -> int:
    """Return how many jobs a worker claims while it could only claim what it cannot run."""
    before = orchestrator.telemetry.claimed
    await asyncio.sleep(WATCHED)  # what is looked for is that nothing happens
    return orchestrator.telemetry.claimed - before


@pytest.mark.parametrize(
    "given",
    [
        (None, "no encryption keys"),
        (f"k2:{K2}", 'sealed with key "k1", which this process does not have (it has k2)'),
        (f"k1:{new_key()}", 'another key "k1" than the one that this process has'),
    ],
    ids=["none", "other", "same-name"],
)
async def test_a_worker_without_the_key_leaves_its_jobs_to_others(
    url: str, given: tuple[str | None, str], make: Make, worker: Worker, caplog: Log
) -> None:
    caplog.set_level(logging.INFO)
    keys, told = given
    right, wrong = make(url), make(url, keys)
    job = await right.tasks["pay"].enqueue(card="4111")
    first = worker(wrong)
    await first.start()
    await until(lambda: "cannot be run here" in caplog.text)
    assert told in caplog.text
    assert REMEDY in caplog.text
    assert "4111" not in caplog.text

    async def reserved() -> bool:
        [queue] = await wrong.engine.queues()
        return queue.reserved == {"pay": 1}

    await until(reserved)
    assert await claims_while_idle(first) == 0
    now = await wrong.get(job.id)
    assert (now.status, now.attempt) == (Status.PENDING, 0)
    assert not now.attempts
    # It goes on with what it can run.
    other = await wrong.tasks["plain"].enqueue("hello")
    assert await wrong.result(other, timeout=60) == "hello"
    second = worker(right)
    await second.start()
    assert await right.result(job, timeout=60) == {"card": "4111", "amount": 1}
    assert (await right.get(job)).attempt == 1
    assert caplog.text.count("cannot be run here") == 1


async def test_a_worker_goes_on_with_jobs_of_the_task_that_it_can_open(
    here: str, make: Make, worker: Worker
) -> None:
    old, new = make(here), make(here, f"k2:{K2}")
    await old.tasks["pay"].enqueue(card="4111")
    await worker(new, max_workers=1).start()

    async def left() -> dict[str, int]:
        [queue] = await new.engine.queues()
        return dict(queue.reserved)

    await until(lambda: _equal(left, {"pay": 1}))
    # It meets another one before far more than it takes at once.
    await new.pause("default")
    await old.tasks["pay"].enqueue(card="4112")
    pay = new.tasks["pay"]
    await new.enqueue_many(pay.job(card="1") for _ in range(800))
    last = await pay.enqueue(card="last")
    await new.resume("default")
    assert (await new.result(last, timeout=60))["card"] == "last"
    await until(lambda: _equal(left, {"pay": 2}))


async def _equal(read: Callable[[], Awaitable[Any]], expected: Any) -> bool:
    return bool(await read() == expected)


async def test_why_names_the_key(here: str, make: Make, worker: Worker) -> None:
    right, wrong = make(here), make(here, f"k2:{K2}")
    job = await right.tasks["pay"].enqueue(card="4111")
    await worker(wrong).start()

    async def told() -> str:
        reason = (await right.why(job.id))[0]
        # The worker claims it now and then, and gives it back.
        return reason if "sealed with key 'k1'" in reason else ""

    assert "has this key" in await until(told)


async def test_a_plain_handler_that_cannot_seal_fails_like_any_other(
    here: str, make: Make, worker: Worker
) -> None:
    app = make(here, None)

    @app.task("asks", retries=0)
    async def asks() -> None:
        await app.tasks["pay"].enqueue(card="4111")

    job = await asks.enqueue()
    await worker(app).start()
    with pytest.raises(headrace.JobFailed, match="has no encryption keys"):
        await app.result(job, timeout=60)


async def test_jobs_from_before_encryption_need_the_keys_too(
    here: str, make: Make, worker: Worker, caplog: Log
) -> None:
    """What an encrypted task returns is never stored in plain."""
    old = make(here, None)
    job = NewJob(id=new_id(), task="pay", args=b'{"card":"4111"}')
    await old.open()
    await old.engine.insert([job])
    await worker(old).start()
    await until(lambda: "this worker has no encryption keys" in caplog.text)

    async def given_back() -> bool:
        return (await old.get(job.id)).attempt == 0

    await until(given_back)
    right = make(here)
    await worker(right).start()
    assert await right.result(job.id, timeout=60) == {"card": "4111", "amount": 1}
    stored = (await old.get(job.id)).result_json
    assert stored is not None
    assert b"4111" not in stored


async def test_a_key_that_is_missing_in_the_middle_spends_no_attempt(
    here: str, make: Make, worker: Worker, caplog: Log
) -> None:
    """A stage was sealed with a newer key than this worker has."""
    newer, older = make(here, BOTH), make(here, f"k1:{K1}")
    for app in (newer, older):

        @app.task("steps", encrypt=True, retry=headrace.RetryPolicy(retries=3, base=0.01))
        async def steps(ctx: headrace.Context) -> str:
            kept: str = await ctx.stage("one", str, "stored")
            await ctx.wait("go")
            return kept

    job = await older.tasks["steps"].enqueue()
    first = worker(newer)
    await first.start()

    async def suspended() -> bool:
        return bool((await older.get(job)).awaits)

    await until(suspended)
    await first.stop()
    await older.signal(job.id, "go")
    second = worker(older)
    await second.start()
    await until(lambda: 'sealed with key "k2"' in caplog.text)
    assert await claims_while_idle(second) <= 1

    async def given_back() -> bool:
        return (await older.get(job)).attempt == 0

    await until(given_back)
    await worker(newer).start()
    assert await newer.result(job, timeout=60) == "stored"


async def test_enqueueing_without_keys_stores_nothing(here: str, make: Make) -> None:
    app = make(here, None)
    with pytest.raises(headrace.MissingEncryptionKey, match=f'task "pay" is encrypted.*{REMEDY}'):
        await app.tasks["pay"].enqueue(card="4111")
    with pytest.raises(headrace.MissingEncryptionKey, match=REMEDY):
        await app.enqueue("pay", {"card": "4111"})
    assert not (await app.list()).jobs


async def test_an_event_for_an_encrypted_job_needs_the_keys(url: str, make: Make) -> None:
    right, wrong = make(url), make(url, None)
    job = await right.tasks["pay"].enqueue(card="4111")
    with pytest.raises(headrace.MissingEncryptionKey, match=f"event 'go'.*{REMEDY}"):
        await wrong.signal(job.id, "go", "secret")
    assert not await right.engine.entries(job.id)
    assert await right.signal(job.id, "go", "secret") == "delivered"
    [entry] = await right.engine.entries(job.id)
    assert b"secret" not in entry.body
    other = await wrong.tasks["plain"].enqueue()
    assert await wrong.signal(other.id, "go", "seen") == "delivered"
    assert [each.body for each in await wrong.engine.entries(other.id)] == [b'"seen"']


async def test_reading_without_the_key(here: str, make: Make, worker: Worker) -> None:
    right, wrong, none = make(here), make(here, f"k2:{K2}"), make(here, None)
    job = await right.tasks["pay"].enqueue(card="4111")
    await worker(right).run_until_idle()
    for app in (wrong, none):
        seen = await app.get(job.id)
        assert seen.sealed_with == "k1"
        assert seen.status is Status.COMPLETED
        with pytest.raises(headrace.MissingEncryptionKey, match='"k1"'):
            _ = seen.args
        with pytest.raises(headrace.MissingEncryptionKey, match='"k1"'):
            await app.result(job.id)
        shown = seen.to_dict()
        assert shown["args"]["$sealed"]["key"] == shown["result"]["$sealed"]["key"] == "k1"
    assert await right.result(job.id) == {"card": "4111", "amount": 1}


async def test_a_worker_does_not_start_with_keys_that_cannot_be_used(
    here: str, make: Make, worker: Worker
) -> None:
    app = make(here, "k1:tooshort")
    with pytest.raises(headrace.InvalidSetting, match='key "k1" must be 32 bytes') as raised:
        await worker(app).start()
    assert "tooshort" not in str(raised.value)


async def test_a_value_that_was_moved_from_another_job_is_refused(
    url: str, make: Make, worker: Worker, caplog: Log
) -> None:
    app = make(url)
    ran: list[str] = []

    @app.task("note", encrypt=True)
    async def note(text: str) -> None:
        ran.append(text)

    job = await note.options(delay=3600).enqueue(text="for this job alone")
    copy = NewJob(id=new_id(), task="note", args=job.args_json)
    await app.engine.insert([copy])
    await worker(app).run_until_idle()
    moved = await app.get(copy.id)
    assert moved.status is Status.FAILED
    assert moved.error_type == "SealRefused"
    assert "sealed for another job" in (moved.error or "")
    assert moved.attempt == 1
    assert not ran


async def test_an_event_that_was_moved_from_another_job_is_refused(
    here: str, make: Make, worker: Worker
) -> None:
    app = make(here)

    @app.task("waits", encrypt=True, retries=0)
    async def waits(ctx: headrace.Context) -> str:
        found: str = await ctx.wait("go")
        return found

    first, second = await waits.enqueue(), await waits.enqueue()
    await app.signal(first.id, "go", "for the first")
    [entry] = await app.engine.entries(first.id)
    engine: Engine = app.engine
    await engine.signal(second.id, "go", entry.body)
    await worker(app).run_until_idle()
    assert await app.result(first) == "for the first"
    refused = await app.get(second)
    assert (refused.status, refused.error_type) == (Status.FAILED, "SealRefused")
