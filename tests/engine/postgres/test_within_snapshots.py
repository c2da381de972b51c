"""Enqueueing in a caller's transaction that sees the past: REPEATABLE READ and SERIALIZABLE."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue

SNAPSHOTS = pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])


async def finished(postgres: PostgresEngine, **fields: Any) -> str:
    """A job that has finished."""
    job_id = await enqueue(postgres, **fields)
    [job] = await claim(postgres, await a_worker(postgres))
    assert await complete(postgres, job)
    return job_id


async def take_snapshot(connection: Any) -> None:
    await connection.fetchval("SELECT count(*) FROM pg_class")


@SNAPSHOTS
async def test_a_key_whose_job_was_pruned_since_the_snapshot_is_free(
    postgres: PostgresEngine, address: Address, isolation: Any
) -> None:
    await finished(postgres, key="k")
    connection = await asyncpg.connect(address.dsn)
    async with connection.transaction(isolation=isolation):
        await take_snapshot(connection)
        assert await postgres.prune(keep=0) == 1
        [first] = await postgres.insert_within(connection, [a_job(key="k")])
        async with connection.transaction():
            again = await postgres.insert_within(connection, [a_job(key="k"), a_job(key="k")])
    await connection.close()
    assert first.created
    assert [(each.id, each.created) for each in again] == [(first.id, False)] * 2
    [later] = await postgres.insert([a_job(key="k")])
    assert (later.id, later.created) == (first.id, False)
    assert [job.id for job in await claim(postgres, await a_worker(postgres), 10)] == [first.id]


@SNAPSHOTS
async def test_only_the_jobs_whose_keys_are_taken_are_left_out_of_such_a_transaction(
    postgres: PostgresEngine, address: Address, isolation: Any
) -> None:
    await finished(postgres, key="gone")
    kept = await enqueue(postgres, key="kept")
    connection = await asyncpg.connect(address.dsn)
    async with connection.transaction(isolation=isolation):
        await take_snapshot(connection)
        assert await postgres.prune(keep=0) == 1
        jobs = [a_job(key="kept"), a_job(), a_job(key="gone"), a_job(key="new"), a_job(key="gone")]
        answers = await postgres.insert_within(connection, jobs)
    await connection.close()
    assert [(each.id, each.created) for each in answers] == [
        (kept, False),
        (jobs[1].id, True),
        (jobs[2].id, True),
        (jobs[3].id, True),
        (jobs[2].id, False),
    ]


@SNAPSHOTS
async def test_a_key_that_was_taken_since_the_snapshot_ends_such_a_transaction(
    postgres: PostgresEngine, address: Address, isolation: Any
) -> None:
    """The caller's database says so of everything that it cannot see; the caller begins again."""
    await finished(postgres, key="k")
    connection = await asyncpg.connect(address.dsn)
    transaction = connection.transaction(isolation=isolation)
    await transaction.start()
    await take_snapshot(connection)
    await postgres.prune(keep=0)
    await enqueue(postgres, key="k")
    with pytest.raises(asyncpg.SerializationError):
        await postgres.insert_within(connection, [a_job(key="k")])
    await transaction.rollback()
    await connection.close()
