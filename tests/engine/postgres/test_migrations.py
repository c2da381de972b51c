"""Bringing the schema up to date: once, whole, by whoever comes first."""

from __future__ import annotations

import asyncio
import sys

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.migrate import NEWEST
from headrace.errors import EngineError, SchemaTooNew
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_worker, claim, complete, enqueue, fail

OPEN = """
import asyncio, sys
from headrace.engine.open import open_engine

async def main():
    engine = open_engine(sys.argv[1])
    await engine.open()
    await engine.close()

asyncio.run(main())
"""


async def test_ten_processes_may_start_at_once(engine_url: str, address: Address) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPEN, engine_url, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(10)
    ]
    ends = await asyncio.gather(*(process.communicate() for process in processes))
    assert [process.returncode for process in processes] == [0] * 10, ends
    connection = await asyncpg.connect(address.dsn)
    applied = await connection.fetch(
        f"SELECT version, count(*) FROM {address.quoted_schema}.migration GROUP BY version"
    )
    await connection.close()
    assert sorted((row[0], row[1]) for row in applied) == [(n, 1) for n in range(1, NEWEST + 1)]


async def test_a_newer_schema_is_left_alone(
    postgres: PostgresEngine, engine_url: str, raw: Raw
) -> None:
    schema = postgres.address.quoted_schema
    await raw.execute(f"INSERT INTO {schema}.migration (version) VALUES ({NEWEST + 7})")
    old = PostgresEngine(engine_url, clock=Clock())
    with pytest.raises(SchemaTooNew, match=rf"version {NEWEST + 7}.*up to {NEWEST}"):
        await old.open()
    await old.close()
    await raw.execute(f"DELETE FROM {schema}.migration WHERE version = {NEWEST + 7}")


async def test_a_migration_that_stops_half_way_leaves_nothing(
    engine_url: str, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.engine.postgres import migrate

    broken = [*migrate.KNOWN[:2], (3, "CREATE TABLE half (n integer); SELECT 1 / 0")]
    engine = PostgresEngine(engine_url, clock=Clock())
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "KNOWN", broken)
        with pytest.raises(Exception, match="division by zero"):
            await engine.open()
    connection = await asyncpg.connect(address.dsn)
    there = "SELECT count(*) FROM pg_namespace WHERE nspname = $1"
    assert await connection.fetchval(there, address.schema) == 0
    await connection.close()
    await engine.open()
    assert await enqueue(engine)
    await engine.close()


async def test_a_user_without_rights_is_told_which_are_missing(
    postgres: PostgresEngine, raw: Raw, engine_url: str
) -> None:
    await raw.execute("DROP ROLE IF EXISTS nobody_special")
    await raw.execute("CREATE ROLE nobody_special LOGIN")
    stranger = PostgresEngine(
        engine_url.replace("postgres@", "nobody_special@").replace("schema=", "schema=x"),
        clock=Clock(),
    )
    with pytest.raises(EngineError, match="Grant the user CREATE"):
        await stranger.open()
    await raw.execute("DROP ROLE nobody_special")


async def test_an_existing_empty_schema_is_used(engine_url: str, address: Address) -> None:
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(f"CREATE SCHEMA {address.quoted_schema}")
    await connection.close()
    engine = PostgresEngine(engine_url, clock=Clock())
    await engine.open()
    assert await enqueue(engine)
    await engine.close()


async def test_people_can_read_jobs_with_psql(postgres: PostgresEngine, raw: Raw) -> None:
    worker = await a_worker(postgres)
    done = await enqueue(postgres, args='{"name":"물"}'.encode())
    [job] = await claim(postgres, worker)
    await complete(postgres, job, b'{"ok":true}')
    failed = await enqueue(postgres, task="t")
    [job] = await claim(postgres, worker)
    await fail(postgres, job)
    waiting = [await enqueue(postgres, lane="l") for _ in range(2)][1]
    rows = await raw.fetch(f"SELECT * FROM {postgres.address.quoted_schema}.jobs")
    seen = {str(row["id"]): row for row in rows}
    assert (seen[done]["status"], seen[done]["args"]) == ("completed", '{"name":"물"}')
    assert seen[done]["result"] == '{"ok":true}'
    assert (seen[failed]["status"], seen[failed]["error"]) == ("failed", "it broke")
    assert (seen[waiting]["status"], seen[waiting]["waits_for_lane"]) == ("pending", True)


async def test_nothing_is_made_outside_the_schema(postgres: PostgresEngine, raw: Raw) -> None:
    await enqueue(postgres, lane="l", key="k")
    public = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    assert await raw.fetchval(public) == 0
