"""The audit: sees what is wrong, in pieces that stop nobody else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.clock import Clock
from headrace.engine.redis.engine import RedisEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import a_job, a_worker, claim, enqueue

# What one call may look at: a stretch of 1,000 jobs, or what is counted in one moment.
MOST_READ = 1_500


async def many_of_everything(engine: RedisEngine) -> None:
    """More than one piece of each index."""
    worker = await a_worker(engine)
    parent = await enqueue(engine, queue="parents", delay=60)
    await engine.insert([a_job(parent=parent) for _ in range(3_500)])
    while jobs := await claim(engine, worker, 1_000):
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])
    await engine.insert([a_job(queue="plain") for _ in range(1_500)])
    await engine.insert([a_job(queue="laned", lane=f"l{n % 1_100}") for n in range(2_500)])
    await claim(engine, worker, 500, ["laned"])


async def test_an_audit_looks_at_a_bounded_number_of_jobs_in_one_call(
    redis_engine: RedisEngine,
) -> None:
    await many_of_everything(redis_engine)

    async def audit() -> None:
        assert await redis_engine.audit() == []

    read, most, calls = 0, 0, 0
    for by_script, words in await commands_of(redis_engine, audit()):
        if words[0].upper() == "EVALSHA":
            read, calls = 0, calls + 1
        elif by_script and words[0].upper() == "HMGET":
            read += len(words) - 2
            most = max(most, read)
    assert calls > 10
    assert most <= MOST_READ


LINE: list[str] = []
TWO_PLACES = b"\x05\x00\x02\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00"
NO_PLACES = b"\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xe8\x03"

Damage = Callable[[RedisEngine, str], tuple[str | int | bytes, ...]]
DAMAGES: dict[str, Damage] = {
    "has no place in lane": lambda e, i: ("DEL", e.key("places")),
    "held by nobody": lambda e, i: ("ZREM", e.key("ready"), *LINE),
    "is unknown but has jobs": lambda e, i: ("HDEL", e.key("lanes"), "q\0l"),
    "counts 2 places but has 1": lambda e, i: ("HSET", e.key("lanes"), "q\0l", TWO_PLACES),
    "in the wrong place": lambda e, i: ("ZADD", e.key("ready"), 0, f"other\0{'0' * 17}{i}"),
    "is listed as state 3": lambda e, i: ("ZADD", e.key("held"), 0, f"w\0{i}"),
    "counts 7 jobs in state 0": lambda e, i: ("HSET", e.key("counts"), "0q", 7),
    "are in a line or finished": lambda e, i: ("RPUSH", e.key("finished"), "12345678x"),
    "has no body": lambda e, i: ("HDEL", e.key("bodies"), i),
    "in the index by id": lambda e, i: ("DEL", e.key("ids")),
    "has to start by a time": lambda e, i: ("DEL", e.key("expiry")),
    "known but has no jobs": lambda e, i: ("HSET", e.key("lanes"), "q\0none", NO_PLACES),
}


@pytest.mark.parametrize("words", DAMAGES)
async def test_an_audit_sees_what_is_wrong(engine_url: str, clock: Clock, words: str) -> None:
    engine = RedisEngine(engine_url, clock=clock)
    await engine.open()
    job_id = await enqueue(engine, queue="q", lane="l", expires_in=60)
    assert await engine.audit() == []
    LINE[:] = [
        each.decode() for each in await engine._link.call("ZRANGE", engine.key("ready"), 0, 9)
    ]
    await engine._link.call(*DAMAGES[words](engine, job_id))
    assert words in " ".join(finding.detail for finding in await engine.audit())
    await engine.close()
