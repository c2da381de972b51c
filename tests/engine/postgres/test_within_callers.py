"""What a caller's connection must be, and that one which blocks does not block everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import InvalidInput
from tests.engine.postgres.test_within import asyncpg_connection, sqlalchemy_url
from tests.support.verbs import a_job, a_worker, claim, enqueue

AUTOCOMMIT = {"isolation_level": "AUTOCOMMIT"}


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@pytest.mark.parametrize("by_engine", [True, False])
async def test_an_asynchronous_sqlalchemy_session_in_autocommit_is_refused(
    postgres: PostgresEngine, address: Address, driver: str, by_engine: bool
) -> None:
    options = AUTOCOMMIT if by_engine else {}
    engine = sqlalchemy_asyncio.create_async_engine(sqlalchemy_url(address, driver), **options)
    other = engine if by_engine else engine.execution_options(**AUTOCOMMIT)
    async with sqlalchemy_asyncio.AsyncSession(other) as session, session.begin():
        with pytest.raises(InvalidInput, match="AUTOCOMMIT"):
            await postgres.insert_within(session, [a_job()])
    async with other.connect() as connection:
        with pytest.raises(InvalidInput, match="AUTOCOMMIT"):
            await postgres.insert_within(connection, [a_job()])
    await engine.dispose()
    assert await claim(postgres, await a_worker(postgres)) == []


async def test_a_sqlalchemy_session_in_autocommit_is_refused(
    postgres: PostgresEngine, address: Address
) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(address, "psycopg"))
    with orm.Session(engine) as session:
        session.connection(execution_options=AUTOCOMMIT)
        with pytest.raises(InvalidInput, match="AUTOCOMMIT"):
            await postgres.insert_within(session, [a_job()])
    with engine.connect() as connection:
        # The same connection of the driver, out of the pool: now it is not in autocommit.
        [kept] = await postgres.insert_within(connection, [a_job()])
        connection.commit()
    with (
        engine.connect().execution_options(**AUTOCOMMIT) as connection,
        pytest.raises(InvalidInput, match="AUTOCOMMIT"),
    ):
        await postgres.insert_within(connection, [a_job()])
    engine.dispose()
    assert [job.id for job in await claim(postgres, await a_worker(postgres), 10)] == [kept.id]


async def test_a_blocking_psycopg_connection_in_autocommit_is_refused(
    postgres: PostgresEngine, address: Address
) -> None:
    with psycopg.connect(address.dsn, autocommit=True) as connection:
        with pytest.raises(InvalidInput, match="not in a transaction"):
            await postgres.insert_within(connection, [a_job()])
        with connection.transaction():
            await postgres.insert_within(connection, [a_job()])
    assert len(await claim(postgres, await a_worker(postgres), 10)) == 1


async def test_a_session_that_is_another_one_in_each_thread_is_refused(
    postgres: PostgresEngine, address: Address
) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(address, "psycopg"))
    session = orm.scoped_session(orm.sessionmaker(engine))
    with pytest.raises(InvalidInput, match=r"conn=session\(\)"):
        await postgres.insert_within(session, [a_job()])
    await postgres.insert_within(session(), [a_job()])
    session.commit()
    session.remove()
    engine.dispose()
    assert len(await claim(postgres, await a_worker(postgres), 10)) == 1


def blocking_psycopg(address: Address) -> Any:
    # It gives up by itself, so that a test that fails does not hang.
    return psycopg.connect(address.dsn, options="-c lock_timeout=5s")


def blocking_sqlalchemy(address: Address) -> Any:
    url = sqlalchemy_url(address, "psycopg")
    engine = sqlalchemy.create_engine(
        url, poolclass=sqlalchemy.NullPool, connect_args={"options": "-c lock_timeout=5s"}
    )
    return orm.Session(engine)


BLOCKING = pytest.mark.parametrize("connect", [blocking_psycopg, blocking_sqlalchemy])


@BLOCKING
async def test_a_connection_that_blocks_does_not_block_the_event_loop(
    postgres: PostgresEngine, address: Address, connect: Callable[[Address], Any]
) -> None:
    async with asyncpg_connection(address) as (first, finish):
        [taken] = await postgres.insert_within(first, [a_job(key="k")])
        with connect(address) as connection:
            waiting = asyncio.create_task(postgres.insert_within(connection, [a_job(key="k")]))
            await enqueue(postgres)
            assert not waiting.done()
            await finish(True)
            [answer] = await waiting
            connection.rollback()
    assert (answer.id, answer.created) == (taken.id, False)


@BLOCKING
async def test_who_is_cancelled_goes_on_when_the_connection_is_free_again(
    postgres: PostgresEngine, address: Address, connect: Callable[[Address], Any]
) -> None:
    async with asyncpg_connection(address) as (first, finish):
        await postgres.insert_within(first, [a_job(key="k")])
        with connect(address) as connection:
            waiting = asyncio.create_task(postgres.insert_within(connection, [a_job(key="k")]))
            await enqueue(postgres)
            waiting.cancel()
            await asyncio.sleep(0)
            waiting.cancel()
            await enqueue(postgres)
            assert not waiting.done()
            await finish(False)
            await asyncio.wait([waiting])
            assert waiting.cancelled()
            connection.rollback()
    [later] = await postgres.insert([a_job(key="k")])
    assert later.created
