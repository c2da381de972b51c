"""Enqueueing inside the caller's own transaction, whatever driver the caller has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import InvalidInput
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.outcome import Completed, Settlement, Snoozed
from tests.engine.conftest import Opener
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle, the_job

Finish = Callable[[bool], Awaitable[None]]
"""Commits (True) or rolls back (False)."""


@asynccontextmanager
async def asyncpg_connection(address: Address) -> AsyncIterator[tuple[Any, Finish]]:
    connection = await asyncpg.connect(address.dsn)
    transaction = connection.transaction()
    await transaction.start()
    yield connection, lambda keep: transaction.commit() if keep else transaction.rollback()
    await connection.close()


@asynccontextmanager
async def asyncpg_from_pool(address: Address) -> AsyncIterator[tuple[Any, Finish]]:
    async with (
        asyncpg.create_pool(address.dsn, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
    ):
        transaction = connection.transaction()
        await transaction.start()
        yield connection, lambda keep: transaction.commit() if keep else transaction.rollback()


@asynccontextmanager
async def psycopg_async(address: Address) -> AsyncIterator[tuple[Any, Finish]]:
    connection = await psycopg.AsyncConnection.connect(address.dsn, row_factory=dict_row)
    yield connection, lambda keep: connection.commit() if keep else connection.rollback()
    await connection.close()


@asynccontextmanager
async def psycopg_blocking(address: Address) -> AsyncIterator[tuple[Any, Finish]]:
    connection = psycopg.connect(address.dsn)

    async def finish(keep: bool) -> None:
        (connection.commit if keep else connection.rollback)()

    yield connection, finish
    connection.close()


def sqlalchemy_url(address: Address, driver: str) -> str:
    return urlsplit(address.dsn)._replace(scheme=f"postgresql+{driver}").geturl()


@asynccontextmanager
async def sqlalchemy_session(address: Address, driver: str) -> AsyncIterator[tuple[Any, Finish]]:
    engine = sqlalchemy_asyncio.create_async_engine(sqlalchemy_url(address, driver))
    async with sqlalchemy_asyncio.AsyncSession(engine) as session:
        yield session, lambda keep: session.commit() if keep else session.rollback()
    await engine.dispose()


@asynccontextmanager
async def sqlalchemy_connection(address: Address) -> AsyncIterator[tuple[Any, Finish]]:
    engine = sqlalchemy_asyncio.create_async_engine(sqlalchemy_url(address, "asyncpg"))
    async with engine.connect() as connection:
        yield connection, lambda keep: connection.commit() if keep else connection.rollback()
    await engine.dispose()


@asynccontextmanager
async def sqlalchemy_blocking(
    address: Address, maker: Callable[[sqlalchemy.Engine], Any]
) -> AsyncIterator[tuple[Any, Finish]]:
    engine = sqlalchemy.create_engine(sqlalchemy_url(address, "psycopg"))
    with maker(engine) as session:

        async def finish(keep: bool) -> None:
            (session.commit if keep else session.rollback)()

        yield session, finish
    engine.dispose()


CALLERS: dict[str, Callable[[Address], Any]] = {
    "asyncpg": asyncpg_connection,
    "asyncpg from a pool": asyncpg_from_pool,
    "psycopg async": psycopg_async,
    "psycopg": psycopg_blocking,
    "SQLAlchemy AsyncSession on asyncpg": lambda a: sqlalchemy_session(a, "asyncpg"),
    "SQLAlchemy AsyncSession on psycopg": lambda a: sqlalchemy_session(a, "psycopg"),
    "SQLAlchemy AsyncConnection": sqlalchemy_connection,
    "SQLAlchemy Session": lambda a: sqlalchemy_blocking(a, orm.Session),
    "SQLAlchemy Connection": lambda a: sqlalchemy_blocking(a, lambda engine: engine.connect()),
}


@pytest.mark.parametrize("caller", list(CALLERS))
async def test_jobs_exist_if_and_only_if_the_caller_commits(
    postgres: PostgresEngine, address: Address, caller: str
) -> None:
    worker = await a_worker(postgres)
    for keep in (False, True):
        free = a_job(queue="mail", args='{"물":"🎡"}'.encode(), meta=b'{"a":1}', timeout=None)
        laned = a_job(queue="mail", lane="user:'1\"", width=2, hold=False, priority=3)
        async with CALLERS[caller](address) as (connection, finish):
            answers = await postgres.insert_within(connection, [free, laned])
            assert [(each.id, each.created) for each in answers] == [
                (free.id, True),
                (laned.id, True),
            ]
            assert await postgres.get([free.id, laned.id]) == []
            await finish(keep)
        jobs = await claim(postgres, worker, 10)
        if not keep:
            assert jobs == []
            continue
        assert [job.id for job in jobs] == [laned.id, free.id]
        assert (bytes(jobs[1].args), jobs[1].timeout) == ('{"물":"🎡"}'.encode(), None)
        seen = await the_job(postgres, laned.id)
        assert (seen.lane, seen.width, seen.hold, seen.priority) == ("user:'1\"", 2, False, 3)
        assert (await the_job(postgres, free.id)).meta == {"a": 1}
        for job in jobs:
            assert await complete(postgres, job)


@pytest.mark.parametrize("caller", list(CALLERS))
async def test_a_duplicate_key_spares_the_callers_transaction(
    postgres: PostgresEngine, address: Address, caller: str
) -> None:
    existing = await enqueue(postgres, key="k")
    jobs = [a_job(key="k"), a_job(key="new"), a_job(key="new"), a_job()]
    async with CALLERS[caller](address) as (connection, finish):
        answers = await postgres.insert_within(connection, jobs)
        again = await postgres.insert_within(connection, [a_job(key="new")])
        await finish(True)
    assert [(each.id, each.created) for each in answers] == [
        (existing, False),
        (jobs[1].id, True),
        (jobs[1].id, False),
        (jobs[3].id, True),
    ]
    assert [(each.id, each.created) for each in again] == [(jobs[1].id, False)]
    assert len(await postgres.get([job.id for job in jobs])) == 2


async def test_a_connection_outside_a_transaction_is_refused(
    postgres: PostgresEngine, address: Address, raw: Raw
) -> None:
    with pytest.raises(InvalidInput, match="not in a transaction"):
        await postgres.insert_within(raw, [a_job()])
    async with await psycopg.AsyncConnection.connect(address.dsn, autocommit=True) as connection:
        with pytest.raises(InvalidInput, match="not in a transaction"):
            await postgres.insert_within(connection, [a_job()])
        async with connection.transaction():
            await postgres.insert_within(connection, [a_job()])
    [queue] = await postgres.queues()
    assert queue.ready == 1


async def test_what_is_not_a_connection_is_refused(postgres: PostgresEngine) -> None:
    with pytest.raises(InvalidInput, match=r"builtins\.object.*asyncpg"):
        await postgres.insert_within(object(), [a_job()])
    elsewhere = sqlalchemy.create_engine("sqlite://")
    with elsewhere.connect() as connection, pytest.raises(InvalidInput, match="sqlite"):
        await postgres.insert_within(connection, [a_job()])
    elsewhere.dispose()


async def test_the_callers_search_path_does_not_matter(
    postgres: PostgresEngine, address: Address
) -> None:
    connection = await asyncpg.connect(address.dsn, server_settings={"search_path": "pg_catalog"})
    async with connection.transaction():
        await postgres.insert_within(connection, [a_job(lane="l", key="k")])
        assert await connection.fetchval("SHOW search_path") == "pg_catalog"
    await connection.close()
    assert len(await claim(postgres, await a_worker(postgres))) == 1


async def test_callers_with_lanes_in_opposite_order_do_not_wait_for_each_other(
    postgres: PostgresEngine, address: Address
) -> None:
    async with (
        asyncpg_connection(address) as (one, finish_one),
        asyncpg_connection(address) as (two, finish_two),
    ):
        await postgres.insert_within(one, [a_job(lane="A")])
        await postgres.insert_within(two, [a_job(lane="B")])
        async with asyncio.timeout(60):
            await postgres.insert_within(one, [a_job(lane="B")])
            await postgres.insert_within(two, [a_job(lane="A")])
        await finish_one(True)
        await finish_two(True)
    worker = await a_worker(postgres)
    assert sorted(job.lane or "" for job in await claim(postgres, worker, 10)) == ["A", "B"]


async def test_nobody_waits_for_an_open_transaction_of_a_caller(
    postgres: PostgresEngine, address: Address, open_another: Opener
) -> None:
    worker = await a_worker(postgres)
    first = await enqueue(postgres, lane="A", queue="new")
    await enqueue(postgres, lane="A", queue="new")
    [job] = await claim(postgres, worker)
    assert job.id == first
    async with asyncpg_connection(address) as (connection, finish):
        await postgres.insert_within(connection, [a_job(lane="A", queue="new", width=3)])
        await postgres.insert_within(connection, [a_job(lane="A", queue="another")])
        other = await open_another()
        async with asyncio.timeout(60):
            answer = await other.exchange(
                [Settlement(job.id, job.token, Completed())], worker_id=worker, limit=10
            )
            assert len(answer.jobs) == 1
            await enqueue(other, lane="A", queue="new")
            await enqueue(other, lane="A", queue="another")
            await other.promote_due(10)
            await other.prune(older_than=0)
        await finish(True)
    # The caller's width counts from its commit on; the next claim admits it.
    assert await postgres.audit() == []
    assert {job.queue for job in await claim(postgres, worker, 10)} == {"new", "another"}
    [lane] = await postgres.lanes(queue="new")
    assert (lane.width, lane.used) == (3, 3)


async def test_commits_are_heard(postgres: PostgresEngine, address: Address) -> None:
    heard = asyncio.Event()
    stop = await postgres.listen(heard.set, lambda job_id: None)
    async with asyncpg_connection(address) as (connection, finish):
        await postgres.insert_within(connection, [a_job(lane="l")])
        heard.clear()
        await finish(True)
        await asyncio.wait_for(heard.wait(), 60)
    stop()
    assert len(await claim(postgres, await a_worker(postgres))) == 1


async def test_children_of_a_job_are_made_by_the_caller_too(
    postgres: PostgresEngine, address: Address
) -> None:
    worker = await a_worker(postgres)
    parent = await enqueue(postgres, queue="parents")
    [job] = await claim(postgres, worker)
    children = [a_job(parent=parent, group="물", lane="l"), a_job(parent=parent), a_job()]
    async with asyncpg_connection(address) as (connection, finish):
        await postgres.insert_within(connection, children)
        await settle(postgres, job, Snoozed(60, (AwaitedChildren(),)))
        # They count from the commit on, like everything that the caller does.
        assert await postgres.wake([parent]) == [parent]
        [job] = await claim(postgres, worker)
        await settle(postgres, job, Snoozed(60, (AwaitedChildren("물"),)))
        await finish(True)
    assert await postgres.wake([parent]) == []
    seen = await postgres.get([each.id for each in children])
    assert [(each.parent, each.group) for each in seen] == [
        (parent, "물"),
        (parent, None),
        (None, None),
    ]
    jobs = await claim(postgres, worker, 10)
    assert [each.parent for each in jobs] == [parent, parent, None]
    await complete(postgres, jobs[0])
    assert await postgres.wake([parent]) == [parent]


async def test_a_delayed_job_of_a_caller_waits_for_its_time(
    postgres: PostgresEngine, address: Address
) -> None:
    async with asyncpg_connection(address) as (connection, finish):
        await postgres.insert_within(connection, [a_job(lane="l", delay=60)])
        await finish(True)
    worker = await a_worker(postgres)
    assert await claim(postgres, worker) == []
    postgres.clock.advance(61)
    assert (await postgres.promote_due(10)).moved == 1
    assert len(await claim(postgres, worker)) == 1


@pytest.mark.parametrize("taker", ["worker of another queue", "worker that is gone"])
async def test_a_lane_is_heard_of_again_when_somebody_looked_after_it_who_does_not_take_its_jobs(
    postgres: PostgresEngine, address: Address, taker: str
) -> None:
    other = await a_worker(postgres, "other") if taker == "worker of another queue" else "gone"
    heard = asyncio.Event()
    stop = await postgres.listen(heard.set, lambda job_id: None)
    async with asyncpg_connection(address) as (connection, finish):
        await postgres.insert_within(connection, [a_job(queue="mail", lane="l")])
        await finish(True)
        await asyncio.wait_for(heard.wait(), 60)
    heard.clear()
    # The first to look after the commit makes the job ready. Its own worker may have looked before.
    assert await claim(postgres, other, 10, ["other"]) == []
    await asyncio.wait_for(heard.wait(), 60)
    stop()
    assert len(await claim(postgres, await a_worker(postgres), 10, ["mail"])) == 1


async def test_lanes_that_a_claim_leaves_for_the_next_one_are_heard_of_again(
    postgres: PostgresEngine, address: Address
) -> None:
    worker = await a_worker(postgres)
    await postgres.pause("slow", True)
    heard = asyncio.Event()
    stop = await postgres.listen(heard.set, lambda job_id: None)
    async with asyncpg_connection(address) as (connection, finish):
        jobs = [a_job(queue="slow", lane=f"l{n}") for n in range(1_000)]
        await postgres.insert_within(connection, jobs)
        await postgres.insert_within(connection, [a_job(queue="mail", lane="l")])
        await finish(True)
        await asyncio.wait_for(heard.wait(), 60)
    heard.clear()
    assert await claim(postgres, worker, 10) == []
    await asyncio.wait_for(heard.wait(), 60)
    stop()
    assert [job.queue for job in await claim(postgres, worker, 10)] == ["mail"]
