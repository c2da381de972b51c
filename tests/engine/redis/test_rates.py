"""Rates on Redis: what a claim without them pays, who is handed jobs, and what is left behind."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from headrace.clock import Clock
from headrace.engine.redis import scripts
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.insert_policy import InsertPolicy
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Completed, Failed, Released, Retry, Settlement
from headrace.model.status import Status
from tests.engine.rate_words import MINUTE, insert, parked, rated, started
from tests.engine.redis.conftest import commands_of
from tests.engine.redis.test_hand_over import Listener, an_idle_worker
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    retry,
    settle,
    status,
    the_job,
)

KEYS = {"rates", "queue_rates", "rate_index", "job_rates", "rated_jobs"} | {
    "parked_jobs",
    "parked_lines",
}


async def verbs_of(engine: RedisEngine, life: Awaitable[object]) -> list[str]:
    """The scripts that are run meanwhile, each once."""
    shas = {scripts.script(name).sha: name for name in scripts.names()}
    seen = await commands_of(engine, life)
    return list(dict.fromkeys(shas[words[1]] for _, words in seen if words[0] == "EVALSHA"))


async def left(engine: RedisEngine) -> set[str]:
    """Which of the keys for rates there are."""
    return {key for key in KEYS if await engine._link.call("EXISTS", engine.key(key))}


async def test_a_claim_without_rates_pays_for_one_look(redis_engine: RedisEngine) -> None:
    ids = await insert(redis_engine, *(a_job(lane=f"l{n % 3}", width=30) for n in range(20)))
    worker = await a_worker(redis_engine)
    jobs = await claim(redis_engine, worker, 10)
    done = [Settlement(job.id, job.token, Completed(b"1")) for job in jobs]
    seen = await commands_of(redis_engine, redis_engine.exchange(done, worker_id=worker, limit=10))
    names = {redis_engine.key(key) for key in KEYS}
    looks = [words for by_script, words in seen if by_script and names & set(words)]
    assert looks == [["EXISTS", *(redis_engine.key(key) for key in ("rates", "queue_rates"))]]
    assert len(await redis_engine.claimed_by(worker)) == len(ids) - len(jobs)


async def test_the_plain_way_is_taken_again_when_rates_are_gone(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    await insert(redis_engine, rated())

    async def exchange() -> None:
        for job in await claim(redis_engine, worker, 10):
            assert await complete(redis_engine, job)

    # The first finds out, and loses nothing by that.
    assert await verbs_of(redis_engine, exchange()) == ["exchange", "exchange_rated"]
    assert await verbs_of(redis_engine, exchange()) == ["exchange_rated"]
    clock.advance(2 * MINUTE)
    await redis_engine.prune(older_than=1e6)
    await exchange()
    assert await verbs_of(redis_engine, exchange()) == ["exchange"]


async def test_nothing_is_left_behind(redis_engine: RedisEngine, clock: Clock) -> None:
    worker = await a_worker(redis_engine)
    ids = await insert(redis_engine, *(rated() for _ in range(4)))
    [job] = await claim(redis_engine, worker, 10)
    assert await settle(redis_engine, job, Failed(A_FAILURE, hold_lane=MINUTE))
    assert await left(redis_engine) == KEYS - {"queue_rates"}
    await redis_engine.cancel(ids[1:])
    assert await left(redis_engine) == {"rates", "rate_index", "job_rates"}
    clock.advance(2 * MINUTE)
    await redis_engine.prune(older_than=1)
    assert await left(redis_engine) == set()


async def test_jobs_are_handed_over_while_only_lanes_have_rates(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    listener = Listener(redis_engine)
    await listener.listen()
    await insert(redis_engine, rated(delay=MINUTE))
    worker = await an_idle_worker(redis_engine)
    job_id = await enqueue(redis_engine)
    told, job = await listener.handed()
    assert (told, job.id) == (worker, job_id)


@pytest.mark.parametrize("by", ["rate", "hold"])
async def test_a_queue_with_a_rate_or_a_hold_hands_out_nothing(
    redis_engine: RedisEngine, by: str
) -> None:
    """Neither to who had nothing to do before, nor to who finds nothing later."""
    listener = Listener(redis_engine)
    await listener.listen()
    worker = await an_idle_worker(redis_engine)
    if by == "rate":
        await redis_engine.set_rate("default", "", as_rate("1/m"))
    else:
        await redis_engine.hold_lane("default", "", MINUTE)
    ids = [await enqueue(redis_engine)]
    assert await started(redis_engine, worker) == (ids if by == "rate" else [])
    assert await started(redis_engine, worker) == []
    ids.append(await enqueue(redis_engine))
    await listener.heard_all()
    assert listener.jobs.empty()
    assert await status(redis_engine, ids[1]) is Status.PENDING
    assert await started(redis_engine, worker) == []


async def test_followers_have_rates_and_outcomes_with_followers_hold(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    await insert(redis_engine, a_job(lane="h", width=9))
    [job] = await claim(redis_engine, worker)
    follow = (rated(), rated())
    await redis_engine.exchange([Settlement(job.id, job.token, Completed(b"1"), follow=follow)])
    [view] = await redis_engine.rates()
    assert (view.lane, view.rate) == ("h", as_rate("1/m"))
    [first] = await claim(redis_engine, worker, 10)
    assert first.id == follow[0].id
    last = rated()
    outcome = Retry(A_FAILURE, 5 * MINUTE, hold_lane=3 * MINUTE)
    await redis_engine.exchange([Settlement(first.id, first.token, outcome, follow=(last,))])
    clock.advance(2 * MINUTE)
    assert await started(redis_engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(redis_engine, worker) == [follow[1].id]


async def test_a_job_with_a_rate_ends_as_well_with_followers_that_have_none(
    redis_engine: RedisEngine,
) -> None:
    worker = await a_worker(redis_engine)
    await insert(redis_engine, rated())
    [job] = await claim(redis_engine, worker)
    await redis_engine.exchange([Settlement(job.id, job.token, Completed(b"1"), follow=(a_job(),))])
    assert await left(redis_engine) == {"rates", "rate_index", "job_rates"}


async def test_a_parked_job_that_is_run_now_is_not_looked_for_any_more(
    redis_engine: RedisEngine,
) -> None:
    worker = await a_worker(redis_engine)
    ids = await insert(redis_engine, rated(), rated())
    assert await started(redis_engine, worker) == ids[:1]
    assert "parked_jobs" in await left(redis_engine)
    assert await redis_engine.rerun(ids[1:]) == ids[1:]
    assert "parked_jobs" not in await left(redis_engine)


async def test_a_debounced_call_sets_the_rate(redis_engine: RedisEngine) -> None:
    policy = InsertPolicy(on_duplicate="debounce")
    await insert(redis_engine, a_job(lane="h", key="k", delay=MINUTE, width=9))
    again = rated(key="k", policy=policy, delay=MINUTE, width=9, expires_in=5 * MINUTE)
    answer = await redis_engine.insert_by_policy(again)
    assert answer.inserted is not None
    assert not answer.inserted.created
    assert [view.rate for view in await redis_engine.rates()] == [as_rate("1/m")]
    assert (await the_job(redis_engine, answer.inserted.id)).args == {}


async def test_a_hold_that_was_forgotten_leaves_no_trace_on_its_jobs(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    """They are claimed in the plain way: a retry gives the place away, and is not parked."""
    worker = await a_worker(redis_engine)
    ids = await insert(redis_engine, *(a_job(lane="h", hold=False) for _ in range(2)))
    await redis_engine.hold_lane("default", "h", MINUTE)
    assert await started(redis_engine, worker) == []
    assert await parked(redis_engine, ids[0])
    clock.advance(MINUTE + 1)
    await redis_engine.promote_due(10)
    await redis_engine.prune(older_than=1e6)
    assert await left(redis_engine) == set()
    [job] = await claim(redis_engine, worker, 10)
    assert job.id == ids[0]
    await retry(redis_engine, job, MINUTE)
    assert not await parked(redis_engine, ids[0])
    assert await started(redis_engine, worker) == ids[1:]


async def test_a_place_that_a_better_one_may_take_is_not_kept_for_having_been_parked(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    [first] = await insert(redis_engine, a_job(lane="h"))
    await redis_engine.hold_lane("default", "h", MINUTE)
    assert await started(redis_engine, worker) == []
    clock.advance(MINUTE + 1)
    [job] = await claim(redis_engine, worker, 10)
    assert await settle(redis_engine, job, Released())
    [better] = await insert(redis_engine, a_job(lane="h", priority=5))
    assert await started(redis_engine, worker) == [better]
    assert (await the_job(redis_engine, first)).status is Status.PENDING


async def test_what_an_older_program_leaves_behind_is_forgotten(
    redis_engine: RedisEngine, admin: RedisConnection, clock: Clock
) -> None:
    """It makes a parked job ready, or ends one, without a look at the indexes of rates."""
    worker = await a_worker(redis_engine)
    first, second = await insert(redis_engine, rated(), rated())
    assert await started(redis_engine, worker) == [first]
    key = redis_engine.key("parked_jobs")
    score = await admin.call("ZSCORE", key, second)
    clock.advance(MINUTE + 1)
    await redis_engine.promote_due(10)
    await admin.call("ZADD", key, score, second)
    assert await started(redis_engine, worker) == [second]
    for job in await redis_engine.claimed_by(worker):
        assert await complete(redis_engine, job)
    await admin.call("ZADD", redis_engine.key("rated_jobs"), 0, f"default\0h\0{second}")
    await admin.call("ZADD", redis_engine.key("rated_jobs"), 0, "default\0h\0gone")
    clock.advance(2 * MINUTE)
    await redis_engine.prune(older_than=1)
    assert await left(redis_engine) == set()
