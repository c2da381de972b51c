"""The scripts: whole, documented, and touching only keys that they declare."""

from __future__ import annotations

import asyncio
import re

import pytest

from headrace.clock import Clock
from headrace.engine.redis import scripts
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.durable.awaited import AwaitedChildren, AwaitedEvent
from headrace.model.durable.writes import Entry, Note
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import JobFilter
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Completed, Failed, Released, Retry, Settlement, Snoozed
from headrace.model.status import Status
from headrace.model.views import RecordChange
from headrace.model.worker import WorkerInfo, WorkerStats
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, complete, enqueue, settle

NAMES = scripts.names()
# A channel is not a key.
KEYLESS = {"TIME", "PUBLISH"}
# Variables that stand for a key; their values come from declared constants.
KEY_VARIABLES = {"key", "index", "hash", "line.index"}


async def use_every_verb(engine: RedisEngine) -> None:
    """A life with everything in it."""
    worker = await a_worker(engine)
    await engine.insert([a_job(lane=f"l{n % 2}", key=f"k{n}", hold=n % 2 == 0) for n in range(8)])
    await engine.insert([a_job(lane="l0", priority=5), a_job(delay=5), a_job(queue="other")])
    for outcome in (Retry(A_FAILURE, 0), Retry(A_FAILURE, 3), Failed(A_FAILURE), Released()):
        for job in await claim(engine, worker, 3):
            note = Note(job.id, job.token, "s", 5.0, "m", (Entry("stage", "one", b"1"),))
            assert await engine.write_progress([note]) == ()
            assert await settle(engine, job, outcome)
    engine.clock.advance(10)
    await engine.promote_due(10)
    held, *others = await claim(engine, worker, 10)
    assert len(await engine.claimed_by(worker)) == 1 + len(others)
    await engine.cancel([held.id, others[0].id])
    await complete(engine, held)
    await engine.entries(held.id)
    await engine.rerun([held.id])
    await engine.pause("other", True)
    await use_a_family(engine, worker)
    await engine.pause("other", False)
    await use_policies(engine, worker)
    await use_rates(engine, worker)
    keeper = engine.keeper(worker, 30)
    await asyncio.to_thread(keeper.renew, WorkerStats())
    await asyncio.to_thread(keeper.close)
    await engine.know(WorkerInfo(id=worker, name="worker", host="here", pid=1, version="0"))
    await engine.retire(worker)
    await engine.take_lost(10)
    await engine.get([held.id])
    await engine.get_part([held.id], 1)
    for status in ((), (Status.PENDING,), (Status.FAILED,)):
        await engine.list_jobs(JobFilter(statuses=status), brief=True)
    await engine.count_jobs(JobFilter())
    await engine.queues()
    await engine.lanes()
    await engine.workers()
    await engine.record_put("kind", "key", b"1")
    await engine.record_list("kind")
    await engine.record_delete("kind", "key")
    engine.clock.advance(100_000)
    await engine.prune(older_than=1)
    assert await engine.audit() == []


async def use_a_family(engine: RedisEngine, worker: str) -> None:
    """A parent that waits for an event and for its children."""
    parent = await enqueue(engine, queue="parents")
    [job] = await claim(engine, worker, queues=["parents"])
    record = RecordChange("kind", "made", b"1")
    await engine.insert([a_job(parent=parent, group="g", queue="parents")], record=record)
    awaits = (AwaitedEvent("approved"), AwaitedChildren("g"))
    assert await settle(engine, job, Snoozed(60, awaits))
    assert await engine.signal(parent, "approved", b"1") == "delivered"
    assert await engine.suspended() == [parent]
    assert await engine.wake([parent]) == [parent]
    for job in await claim(engine, worker, 2, ["parents"]):
        follow = (a_job(parent=parent, group="f", queue="parents", delay=9), a_job(lane="l0"))
        answer = await engine.exchange([Settlement(job.id, job.token, Completed(), follow=follow)])
        assert answer.refused == ()
    again = [("event", "approved")]
    assert await engine.rerun_without(parent, again, token=2, record=record)
    assert await engine.rerun_unchanged({parent: 99}) == []
    assert len((await engine.list_jobs(JobFilter(parent=parent))).jobs) == 3


async def use_policies(engine: RedisEngine, worker: str) -> None:
    """Jobs that give way to others, and jobs that come too late."""
    fields = {"queue": "policies", "lane": "l", "expires_in": 5}
    for policy in (
        InsertPolicy(on_duplicate="replace"),
        InsertPolicy(on_duplicate="debounce", max_wait=5),
        InsertPolicy(window=1),
    ):
        for delay in (0, 3, 1, 0):
            await engine.insert_by_policy(a_job(key="p", policy=policy, delay=delay, **fields))
    assert await claim(engine, worker, 1, ["policies"])
    for when_full in ("refuse", "replace", "cancel_running"):
        full = InsertPolicy(when_full=when_full)
        await engine.insert_by_policy(a_job(policy=full, **fields))
    engine.clock.advance(10)
    await claim(engine, worker, 1, ["policies"])
    await engine.expire(10)


async def use_rates(engine: RedisEngine, worker: str) -> None:
    """Jobs that have to wait for their lane or their queue."""
    fields = {"queue": "rates", "lane": "l", "width": 9, "rate": as_rate("1/m", 2)}
    policy = InsertPolicy(on_duplicate="debounce")
    await engine.insert([a_job(**fields), a_job(key="r", expires_in=30, **fields), a_job(**fields)])
    last = await enqueue(engine, key="s", **fields)
    await engine.insert([a_job(**fields)], record=RecordChange("kind", "rated", b"1"))
    first, second = await claim(engine, worker, 5, ["rates"])
    assert (await engine.insert_by_policy(a_job(key="s", policy=policy, **fields))).inserted
    follow = (a_job(**fields),)
    held = Retry(A_FAILURE, 0, hold_lane=5)
    await engine.exchange([Settlement(first.id, first.token, held, follow=follow)])
    assert await complete(engine, second)
    await engine.hold_lane("rates", "l", 9)
    await engine.set_rate("rates", "", as_rate("9/s"))
    assert await claim(engine, worker, 9, ["rates"]) == []
    engine.clock.advance(40)
    await engine.promote_due(100)
    await engine.expire(10)
    await claim(engine, worker, 9, ["rates"])
    await engine.rerun([last, second.id])
    await claim(engine, worker, 9, ["rates"])
    assert len(await engine.rates()) == 2
    await engine.cancel([last, first.id])


def text_of(name: str) -> str:
    return scripts.text(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_says_what_it_does(name: str) -> None:
    first, second, *others = text_of(name).splitlines()
    assert first.startswith("#!lua")
    assert second.startswith(f"-- {name}: ")
    assert any(line.startswith("-- ARGV 1 offset") for line in others)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_names_only_keys_that_it_declares(name: str) -> None:
    script = scripts.script(name)
    used = {int(number) for number in re.findall(r"KEYS\[(\d+)\]", script.source)}
    assert used == set(range(1, len(script.keys) + 1)), "keys are declared to be used"
    named = re.findall(r"call\('([A-Z]+)'(?:, ([^,)]+))?", script.source)
    assert named
    for command, key in named:
        known = key.startswith("KEYS[") or key in KEY_VARIABLES or command in KEYLESS
        assert known, f"{command} {key} in {name}.lua is not declared"
    assert re.findall(r"\b[A-Z][A-Z_]{2,}\b", re.sub(r"'[^']*'|KEYS|ARGV", "", script.source)) == []


async def test_what_runs_touches_only_declared_keys(redis_engine: RedisEngine) -> None:
    """The server's own word for it: its monitor shows each command that a script makes."""
    address = redis_engine.address
    declared: set[str] = set()
    verbs: set[str] = set()
    touched = 0
    shas = {scripts.script(name).sha: name for name in NAMES}
    for by_script, words in await commands_of(redis_engine, use_every_verb(redis_engine)):
        if words[0].upper() == "EVALSHA":
            declared = set(words[3 : 3 + int(words[2])])
            verbs.add(shas[words[1]])
            assert all(key.startswith(address.prefix) for key in declared)
        elif by_script and words[0].upper() not in KEYLESS:
            touched += 1
            assert words[1] in declared, words
    assert touched > 200
    assert verbs == set(NAMES) - {"migrate"}


async def test_a_user_confined_to_the_namespace_can_do_everything(
    engine_url: str, admin: RedisConnection
) -> None:
    address = RedisAddress.parse(engine_url)
    user = f"user-{address.namespace}"
    await admin.call(
        *("ACL", "SETUSER", user, "on", ">s3cret", "+@all", "-@admin", "-@dangerous"),
        *(f"~{{{address.namespace}}}:*", f"&{{{address.namespace}}}:*"),
    )
    engine = RedisEngine(
        f"redis://{user}:s3cret@{address}/0?namespace={address.namespace}", clock=Clock()
    )
    try:
        await engine.open()
        await use_every_verb(engine)
        stop = await engine.listen(lambda: None, lambda _: None)
        assert engine.listening
        stop()
        findings = (await engine.report()).findings
        assert [each.level for each in findings if each.subject == "settings"] == ["warning"]
    finally:
        await engine.close()
        await admin.call("ACL", "DELUSER", user)


async def test_scripts_that_the_server_forgot_are_sent_again(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine)
    keeper = redis_engine.keeper(worker, 30)
    await admin.call("SCRIPT", "FLUSH")
    [job] = await claim(redis_engine, worker)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)
    await admin.call("SCRIPT", "FLUSH")
    assert await complete(redis_engine, job)
