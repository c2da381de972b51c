"""Inserts by policy: what they lock, in which order, and who waits for whom."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from headrace.engine.postgres import keys_in_doubt
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import KeyInDoubt
from headrace.model.insert_policy import InsertPolicy, WhenFull, replaced_by
from headrace.model.outcome import Retry
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.test_keys_in_doubt import (
    SOON,
    open_transaction,
    until_in_doubt,
    use_all_verbs,
)
from tests.engine.postgres.test_lock_order import meeting
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    settle,
    status,
    the_job,
)

REPLACE = InsertPolicy(on_duplicate="replace")
DEBOUNCE = InsertPolicy(on_duplicate="debounce")


def when_full(name: WhenFull) -> InsertPolicy:
    return InsertPolicy(when_full=name)


@pytest.fixture
async def inside(postgres: PostgresEngine, raw: Raw) -> Raw:
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    return raw


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("b", "a")])
async def test_both_lanes_are_locked_in_the_order_of_names_and_jobs_after_them(
    postgres: PostgresEngine, inside: Raw, old: str, new: str
) -> None:
    first = await enqueue(postgres, key="k", lane=old)
    await enqueue(postgres, lane=new)
    async with inside.transaction():
        await inside.execute("SELECT FROM lane WHERE lane = 'a' FOR UPDATE")
        called = await meeting(
            inside, postgres.insert_by_policy(a_job(key="k", lane=new, policy=REPLACE))
        )
        await inside.execute("SELECT FROM lane FOR UPDATE NOWAIT")
        await inside.execute("SELECT FROM job FOR UPDATE NOWAIT")
    assert (await asyncio.wait_for(called, 60)).cancelled == (first,)


async def test_a_job_without_a_lane_is_locked_before_lanes(
    postgres: PostgresEngine, inside: Raw
) -> None:
    first = await enqueue(postgres, key="k")
    await enqueue(postgres, lane="l")
    async with inside.transaction():
        await inside.execute("SELECT FROM job WHERE id = $1 FOR UPDATE", first)
        called = await meeting(
            inside, postgres.insert_by_policy(a_job(key="k", lane="l", policy=REPLACE))
        )
        await inside.execute("SELECT FROM lane FOR UPDATE NOWAIT")
    assert (await asyncio.wait_for(called, 60)).cancelled == (first,)


@pytest.mark.parametrize("policy", [REPLACE, DEBOUNCE])
@pytest.mark.parametrize("lane", [None, "l"])
async def test_a_job_that_is_claimed_before_it_is_locked_stays(
    postgres: PostgresEngine, inside: Raw, policy: InsertPolicy, lane: str | None
) -> None:
    await a_worker(postgres)
    first = await enqueue(postgres, key="k", lane=lane)
    async with inside.transaction():
        await inside.execute(
            "UPDATE job SET state = 3, token = 1, attempt = 1, worker = 'w', started_at = now(),"
            " holder = (SELECT number FROM worker)"
        )
        second = a_job(key="k", lane=lane, policy=policy, args=b'{"n":2}')
        called = await meeting(inside, postgres.insert_by_policy(second))
    answer = await called
    assert answer.inserted is not None
    assert (answer.inserted.id, answer.inserted.created) == (second.id, True)
    assert answer.cancelled == ()
    job = await the_job(postgres, first)
    assert (job.status, job.args) == (Status.RUNNING, {})


@pytest.mark.parametrize("keep", [True, False])
async def test_it_waits_for_a_key_in_doubt_and_no_other_verb_does(
    postgres: PostgresEngine, address: Address, keep: bool
) -> None:
    async with open_transaction(address) as (connection, transaction):
        [first] = await postgres.insert_within(connection, [a_job(key="k", lane="l")])
        second = a_job(key="k", policy=REPLACE)
        waiting = asyncio.create_task(postgres.insert_by_policy(second))
        await until_in_doubt(postgres)
        async with asyncio.timeout(SOON):
            await use_all_verbs(postgres)
        assert not waiting.done()
        await (transaction.commit() if keep else transaction.rollback())
        answer = await asyncio.wait_for(waiting, SOON)
    assert answer.inserted is not None
    assert (answer.inserted.id, answer.inserted.created) == (second.id, True)
    assert answer.cancelled == ((first.id,) if keep else ())
    assert postgres._in_doubt == {}


async def test_who_has_waited_long_enough_for_a_key_is_told(
    postgres: PostgresEngine, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_in_doubt, "LONGEST_DOUBT", 0.3)
    refused = a_job(key="k", policy=REPLACE)
    async with open_transaction(address) as (connection, transaction):
        await postgres.insert_within(connection, [a_job(key="k")])
        with pytest.raises(KeyInDoubt):
            await postgres.insert_by_policy(refused)
        await transaction.rollback()
    assert await postgres.get([refused.id]) == []


async def test_a_key_that_is_pruned_at_the_same_time_stays_with_its_new_job(
    postgres: PostgresEngine, inside: Raw
) -> None:
    """Who prunes waits for the key, and finds that it is another job's."""
    worker = await a_worker(postgres)
    first = await enqueue(postgres, key="k")
    [job] = await claim(postgres, worker)
    await complete(postgres, job)
    second = a_job(key="other")
    await postgres.insert([second])
    async with inside.transaction():
        # What `insert_by_policy` does to the key of the first.
        await inside.execute("UPDATE job_key SET job_id = $1 WHERE key = 'k'", second.id)
        pruning = await meeting(inside, postgres.prune(keep=0))
    assert await pruning == 1
    assert await postgres.get([first]) == []
    [found] = await postgres.insert([a_job(key="k")])
    assert found.id == second.id


@pytest.mark.parametrize("name", ["refuse", "replace", "cancel_running"])
async def test_a_refused_or_known_job_undoes_what_was_done_for_it(
    postgres: PostgresEngine, inside: Raw, name: WhenFull
) -> None:
    """The width of its lane as well as its key."""
    await enqueue(postgres, lane="l", width=2)
    await enqueue(postgres, lane="l", width=2)
    known = await enqueue(postgres, queue="other")
    new_id = known if name != "refuse" else a_job().id
    job = a_job(id=new_id, lane="l", width=1, key="k", policy=when_full(name))
    answer = await postgres.insert_by_policy(job)
    assert answer.inserted is None if name == "refuse" else not answer.inserted.created  # type: ignore[union-attr]
    assert (answer.cancelled, answer.stopping) == ((), ())
    assert await inside.fetchval("SELECT width FROM lane WHERE lane = 'l'") == 2
    assert await inside.fetchval("SELECT count(*) FROM job_key") == 0


async def test_jobs_of_callers_that_nobody_has_admitted_yet_come_first(
    postgres: PostgresEngine, address: Address
) -> None:
    """They wait for the next claim, in a lane that looks free until then."""
    connection = await asyncpg.connect(address.dsn)
    async with connection.transaction():
        [first] = await postgres.insert_within(connection, [a_job(lane="l")])
    await connection.close()
    refused = await postgres.insert_by_policy(a_job(lane="l", policy=when_full("refuse")))
    assert refused.inserted is None
    # What it saw is undone with it, and the next claim does it.
    worker = await a_worker(postgres)
    assert [job.id for job in await claim(postgres, worker)] == [first.id]


async def test_a_lane_that_a_job_makes_wider_is_filled_with_those_that_wait(
    postgres: PostgresEngine,
) -> None:
    for _ in range(3):
        await enqueue(postgres, lane="l", width=1)
    refused = await postgres.insert_by_policy(a_job(lane="l", width=3, policy=when_full("refuse")))
    assert refused.inserted is None
    stored = await postgres.insert_by_policy(a_job(lane="l", width=4, policy=when_full("refuse")))
    assert stored.inserted is not None
    worker = await a_worker(postgres)
    assert len(await claim(postgres, worker, 10)) == 4


async def test_all_that_hold_a_place_give_way(postgres: PostgresEngine) -> None:
    """Running, ready, and in every state in which a retry keeps its place."""
    worker = await a_worker(postgres)
    ids = [await enqueue(postgres, lane="l", width=4) for _ in range(5)]
    jobs = await claim(postgres, worker, 3)
    await settle(postgres, jobs[0], Retry(A_FAILURE, 100))
    await settle(postgres, jobs[1], Retry(A_FAILURE, 0))
    elsewhere = [await enqueue(postgres, lane="m"), await enqueue(postgres, lane="l", queue="q")]
    newest = a_job(lane="l", width=4, policy=when_full("cancel_running"))
    answer = await postgres.insert_by_policy(newest)
    assert set(answer.cancelled) == {ids[0], ids[1], ids[3], ids[4]}
    assert answer.stopping == (ids[2],)
    assert (await the_job(postgres, ids[0])).error == replaced_by(newest.id)
    assert {await status(postgres, each) for each in elsewhere} == {Status.PENDING}
    claimed = {job.id for job in await claim(postgres, worker, 10)}
    assert claimed == {newest.id, *elsewhere}


async def test_who_is_asked_to_stop_hears_of_it(postgres: PostgresEngine) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    stop = await postgres.listen(lambda: None, heard.put_nowait)
    worker = await a_worker(postgres)
    first = await enqueue(postgres, lane="l")
    await claim(postgres, worker)
    await postgres.insert_by_policy(a_job(lane="l", policy=when_full("cancel_running")))
    assert await asyncio.wait_for(heard.get(), 60) == first
    stop()


async def test_policies_that_cross_lanes_do_not_wait_for_each_other_in_a_circle(
    postgres: PostgresEngine, open_another: Opener, raw: Raw
) -> None:
    """Each moves a key from one lane into another, while others fill and clear these lanes."""
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = await raw.fetchval(deadlocks)
    engines = [postgres, await open_another(), await open_another()]
    lanes = ("a", "b", "c", None)
    names: tuple[WhenFull, ...] = ("replace", "cancel_running", "refuse")

    async def attack(number: int) -> None:
        engine = engines[number % 3]
        for n in range(40):
            lane = lanes[(n * (number + 1)) % 4]
            policy = when_full(names[n % 3]) if n % 2 else REPLACE
            key = None if n % 2 else f"k{n % 3}"
            await engine.insert_by_policy(a_job(key=key, lane=lane, policy=policy))
            await engine.insert([a_job(lane=each) for each in lanes])
            worker = await a_worker(engine, f"w{number}")
            for job in await claim(engine, worker, 3):
                await complete(engine, job)

    await asyncio.wait_for(asyncio.gather(*(attack(number) for number in range(3))), 60)
    await raw.execute("SELECT pg_stat_clear_snapshot()")
    assert await raw.fetchval(deadlocks) == before
