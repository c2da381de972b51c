"""A key that a caller's open transaction has taken: whether its job exists is known at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from headrace.engine.postgres import keys_in_doubt
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.enqueue import Enqueuer
from headrace.errors import EngineUnavailable, KeyInDoubt
from headrace.model.outcome import Completed, Failed, Settlement
from headrace.model.status import Status
from headrace.model.views import RecordChange
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, enqueue, status

WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND application_name LIKE 'headrace %'
        AND datname = current_database()
"""
# What nobody should have to wait; on a busy machine it is much, and a tenth of what a key may take.
SOON = 3.0


@asynccontextmanager
async def open_transaction(address: Address) -> AsyncIterator[tuple[Any, Any]]:
    connection = await asyncpg.connect(address.dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection, transaction
    await connection.close()


async def until_in_doubt(postgres: PostgresEngine, count: int = 1) -> None:
    """Wait until so many keys are waited for."""
    async with asyncio.timeout(20):
        while len(postgres._in_doubt) < count:  # noqa: ASYNC110 - it is no event
            await asyncio.sleep(0.01)


async def until_nobody_waits(raw: Raw) -> None:
    async with asyncio.timeout(20):
        while await raw.fetchval(WAITING):  # noqa: ASYNC110 - the condition is on the server
            await asyncio.sleep(0.01)


async def until_claimed(postgres: PostgresEngine, worker: str, ids: set[str]) -> None:
    while {job.id for job in await postgres.claimed_by(worker)} != ids:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.01)


async def use_all_verbs(postgres: PostgresEngine) -> None:
    worker = await a_worker(postgres, "other", queues=("other",))
    job_id = await enqueue(postgres, queue="other")
    await enqueue(postgres, queue="other", key="another", lane="l")
    await postgres.record_put("kind", "key", b"1")
    await postgres.get([job_id])
    await postgres.promote_due(10)
    await postgres.take_lost(10)
    assert len(await claim(postgres, worker, 10, ["other"])) == 2
    assert len(await postgres.claimed_by(worker)) == 2


@pytest.mark.parametrize(
    ("lane", "record", "keep"),
    [(None, None, True), ("l", None, False), (None, RecordChange("r", "k", b"1"), False)],
)
async def test_one_insert_waits_for_a_key_and_no_other_verb(
    postgres: PostgresEngine,
    address: Address,
    lane: str | None,
    record: RecordChange | None,
    keep: bool,
) -> None:
    async with open_transaction(address) as (connection, transaction):
        [first] = await postgres.insert_within(connection, [a_job(key="k")])
        waiting = asyncio.create_task(postgres.insert([a_job(key="k", lane=lane)], record=record))
        await until_in_doubt(postgres)
        async with asyncio.timeout(SOON):
            await use_all_verbs(postgres)
        assert not waiting.done()
        await (transaction.commit() if keep else transaction.rollback())
        [second] = await asyncio.wait_for(waiting, SOON)
    assert second.created is not keep
    assert (second.id == first.id) is keep
    assert postgres._in_doubt == {}


async def tell_nobody(_: Sequence[str]) -> None:
    """No job is replaced here."""


async def test_who_enqueues_at_the_same_time_does_not_wait_for_the_key_of_another(
    postgres: PostgresEngine, address: Address
) -> None:
    door = Enqueuer(postgres, clock=postgres.clock, on_replaced=tell_nobody)
    async with open_transaction(address) as (connection, transaction):
        [first] = await postgres.insert_within(connection, [a_job(key="k")])
        # The first goes alone, the others travel together with the second that has the key.
        waiting = [asyncio.create_task(door.one(a_job(key="k"))) for _ in range(2)]
        others = [a_job(), a_job(key="a"), a_job(lane="l"), a_job(key="b")]
        async with asyncio.timeout(SOON):
            await asyncio.gather(*(door.one(job) for job in others))
            await door.one(a_job())
        assert not any(each.done() for each in waiting)
        await transaction.commit()
        for each in waiting:
            assert (await asyncio.wait_for(each, SOON)).id == first.id


async def test_a_transaction_may_enqueue_outside_of_itself_while_others_wait_for_its_key(
    postgres: PostgresEngine, address: Address
) -> None:
    """The server cannot see such a tie: who waits for the key is not who the caller waits for."""
    door = Enqueuer(postgres, clock=postgres.clock, on_replaced=tell_nobody)
    async with open_transaction(address) as (connection, transaction):
        await postgres.insert_within(connection, [a_job(key=f"k{n}") for n in range(5)])
        waiting = [asyncio.create_task(door.one(a_job(key=f"k{n}"))) for n in range(5)]
        await until_in_doubt(postgres, 5)
        async with asyncio.timeout(SOON):
            await door.one(a_job(key="outside"))
        await transaction.rollback()
        answers = await asyncio.wait_for(asyncio.gather(*waiting), SOON)
    assert len(await postgres.get([job.id for job in answers])) == 5


async def test_who_has_waited_long_enough_is_told_and_leaves_nothing_behind(
    postgres: PostgresEngine, address: Address, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_in_doubt, "LONGEST_DOUBT", 0.3)
    async with open_transaction(address) as (connection, transaction):
        await postgres.insert_within(connection, [a_job(key="k")])
        for _ in range(2):
            with pytest.raises(KeyInDoubt, match=r"'k'.*transaction.*open"):
                await postgres.insert([a_job(key="k")])
        assert issubclass(KeyInDoubt, EngineUnavailable)
        await until_nobody_waits(raw)
        await transaction.rollback()
    assert (await postgres.insert([a_job(key="k")]))[0].created


async def test_who_does_not_want_to_wait_is_told_at_once(
    postgres: PostgresEngine, address: Address
) -> None:
    async with open_transaction(address) as (connection, transaction):
        await postgres.insert_within(connection, [a_job(key="k")])
        with pytest.raises(KeyInDoubt):
            await asyncio.wait_for(postgres.insert([a_job(key="k")], wait=False), SOON)
        await transaction.rollback()


async def test_a_cancelled_wait_for_a_key_leaves_nothing_behind(
    postgres: PostgresEngine, address: Address, raw: Raw
) -> None:
    async with open_transaction(address) as (connection, transaction):
        await postgres.insert_within(connection, [a_job(key="k")])
        waiting = asyncio.create_task(postgres.insert([a_job(key="k")]))
        await until_in_doubt(postgres)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert postgres._in_doubt == {}
        await until_nobody_waits(raw)
        await transaction.rollback()


@pytest.mark.parametrize("keep", [True, False])
async def test_an_outcome_whose_follower_has_such_a_key_makes_nobody_else_wait(
    postgres: PostgresEngine, address: Address, keep: bool
) -> None:
    worker = await a_worker(postgres)
    for lane in ("l", None, None, "l"):
        await enqueue(postgres, lane=lane)
    one, two, three = await claim(postgres, worker, 3)
    follow, other = a_job(key="k", lane="l"), a_job(key="mine")
    async with open_transaction(address) as (connection, transaction):
        [first] = await postgres.insert_within(connection, [a_job(key="k")])
        settlements = [
            Settlement(one.id, one.token, Completed(), follow=(follow,)),
            Settlement(two.id, two.token, Completed(), follow=(other,)),
            Settlement(three.id, three.token, Completed()),
            Settlement(one.id, one.token, Failed(A_FAILURE)),
        ]
        waiting = asyncio.create_task(
            postgres.exchange(settlements, worker_id=worker, queues=["default"], limit=1)
        )
        await until_in_doubt(postgres)
        async with asyncio.timeout(SOON):
            await use_all_verbs(postgres)
            await until_claimed(postgres, worker, {one.id, other.id})
        assert await status(postgres, two.id) is Status.COMPLETED
        assert await status(postgres, three.id) is Status.COMPLETED
        assert await status(postgres, one.id) is Status.RUNNING
        assert not waiting.done()
        await (transaction.commit() if keep else transaction.rollback())
        answer = await asyncio.wait_for(waiting, SOON)
    assert answer.refused == (one.id,), "the second outcome of the same attempt"
    assert [job.id for job in answer.jobs] == [other.id]
    assert await status(postgres, one.id) is Status.COMPLETED
    assert [job.id for job in await postgres.get([first.id, follow.id])] == [
        first.id if keep else follow.id
    ]
    assert postgres._in_doubt == {}


async def test_an_outcome_that_waits_too_long_for_a_key_is_not_recorded(
    postgres: PostgresEngine, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_in_doubt, "LONGEST_DOUBT", 0.3)
    worker = await a_worker(postgres)
    await enqueue(postgres)
    [job] = await claim(postgres, worker)
    settlement = Settlement(job.id, job.token, Completed(), follow=(a_job(key="k"),))
    async with open_transaction(address) as (connection, transaction):
        await postgres.insert_within(connection, [a_job(key="k")])
        with pytest.raises(KeyInDoubt):
            await postgres.exchange([settlement])
        assert await status(postgres, job.id) is Status.RUNNING
        await transaction.rollback()
    assert (await postgres.exchange([settlement])).refused == ()
    assert await status(postgres, settlement.follow[0].id) is Status.PENDING


async def test_a_statement_that_is_given_up_ends_on_the_server_too(
    postgres: PostgresEngine, address: Address, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    await postgres.record_put("kind", "key", b"1")
    monkeypatch.setattr(postgres._common, "_timeout", 0.3)
    async with raw.transaction():
        await raw.execute(f"LOCK TABLE {address.quoted_schema}.record")
        for _ in range(2):
            with pytest.raises(EngineUnavailable, match="no answer in time"):
                await postgres.record_put("kind", "key", b"2")
        # The lock is still held.
        await until_nobody_waits(raw)
    monkeypatch.setattr(postgres._common, "_timeout", 30.0)
    assert (await postgres.record_put("kind", "key", b"3")).version == 2
