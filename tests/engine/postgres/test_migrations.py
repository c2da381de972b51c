"""Bringing the schema up to date: once, whole, by whoever comes first."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres import migrate as migrate_module
from headrace.engine.postgres.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.migrate import NEWEST
from headrace.errors import EngineError, SchemaTooNew
from headrace.model.awaited import AwaitedChildren
from headrace.model.ids import new_id
from headrace.model.outcome import Settlement, Snoozed
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, fail, the_job

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
    broken = [*migrate_module.KNOWN[:2], (3, "CREATE TABLE half (n integer); SELECT 1 / 0")]
    engine = PostgresEngine(engine_url, clock=Clock())
    with monkeypatch.context() as patch:
        patch.setattr(migrate_module, "KNOWN", broken)
        with pytest.raises(Exception, match="division by zero"):
            await engine.open()
    connection = await asyncpg.connect(address.dsn)
    there = "SELECT count(*) FROM pg_namespace WHERE nspname = $1"
    assert await connection.fetchval(there, address.schema) == 0
    await connection.close()
    await engine.open()
    assert await enqueue(engine)
    await engine.close()


# What a program of the first version calls; the rest is what every job has.
EARLIER_INSERT = """
SELECT * FROM insert_jobs(0, $1, $2, ARRAY['work'], ARRAY['default'], ARRAY[0]::smallint[],
    ARRAY[$3]::double precision[], NULL, $4, $5, ARRAY[1], ARRAY[true], ARRAY[4],
    ARRAY[600]::double precision[], ARRAY[false], ARRAY['code'], NULL)
"""
EARLIER_EXCHANGE = """
SELECT * FROM exchange(0, $1, $2, $3, $4, '{}', '{}', '{}', '{}', false, $5, NULL, $6)
"""
FIRST = 7


async def earlier_insert(
    raw: Raw, amount: int, *, delay: float = 0, key: str | None = None, lane: str | None = None
) -> list[str]:
    ids = [new_id() for _ in range(amount)]
    keys, lanes = (None if each is None else [each] * amount for each in (key, lane))
    await raw.fetch(EARLIER_INSERT, ids, [b"{}"], delay, keys, lanes)
    return ids


async def earlier_exchange(
    raw: Raw, worker: str, limit: int, settled: Sequence[tuple[object, int, int, float]] = ()
) -> list[tuple[str, int]]:
    columns = [[each[n] for each in settled] for n in range(4)]
    claimed = await raw.fetch(EARLIER_EXCHANGE, *columns, worker, limit)
    return [(str(row[0]), row[1]) for row in claimed if row[2] is not None]


async def of_the_first_version(engine_url: str, patch: pytest.MonkeyPatch) -> PostgresEngine:
    engine = PostgresEngine(engine_url, clock=Clock())
    with patch.context() as earlier:
        earlier.setattr(migrate_module, "KNOWN", migrate_module.KNOWN[:FIRST])
        earlier.setattr(migrate_module, "NEWEST", FIRST)
        await engine.open()
    assert (await engine.report()).schema_version == FIRST
    return engine


async def test_a_store_of_the_first_version_is_brought_up_to_date(
    engine_url: str, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await of_the_first_version(engine_url, monkeypatch)
    worker = await a_worker(before)
    await before._ensure_queues({"default"})
    raw = await asyncpg.connect(address.dsn, server_settings={"search_path": address.quoted_schema})
    finished, held, snoozed = await earlier_insert(raw, 3)
    await earlier_exchange(raw, worker, 1)
    [(held, token)] = await earlier_exchange(raw, worker, 1, [(finished, 1, 4, 0)])
    [(snoozed, _)] = await earlier_exchange(raw, worker, 1)
    await earlier_exchange(raw, worker, 0, [(snoozed, 1, 2, 60)])
    laned = await earlier_insert(raw, 3, lane="l")
    [later] = await earlier_insert(raw, 1, delay=60, lane="l")
    [keyed] = await earlier_insert(raw, 1, key="k")

    after = PostgresEngine(engine_url, clock=Clock())
    await after.open()
    assert (await after.report()).schema_version == NEWEST
    assert await after.audit() == []
    jobs = {job.id: job for job in await after.get([finished, held, snoozed, *laned, later, keyed])}
    assert len(jobs) == 8
    assert {(job.parent, job.group, job.awaits) for job in jobs.values()} == {(None, None, ())}
    [same] = await after.insert([a_job(key="k", parent=held, group="a")])
    assert (same.id, same.created) == (keyed, False)
    [child] = await after.insert([a_job(parent=held, group="a")])
    awaits = (AwaitedChildren("a"),)
    await after.exchange([Settlement(held, token, Snoozed(60, awaits))])
    assert (await the_job(after, held)).awaits == awaits

    # A program of that version that is still at work does no harm.
    assert (laned[0], 1) in await earlier_exchange(raw, worker, 10)
    await earlier_exchange(raw, worker, 0, [(laned[0], 1, 2, 60), (child.id, 1, 4, 0)])
    assert (await the_job(after, child.id)).parent == held
    assert await after.wake([held, laned[0]]) == [held]
    await earlier_insert(raw, 2, lane="l", key="k2")
    after.clock.advance(61)
    assert (await after.due(10)).moved == 3
    assert await after.audit() == []
    await raw.close()
    await before.close()
    await after.close()


async def test_a_migration_that_meets_others_at_work_begins_again(
    engine_url: str, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have looked at a table that it wants, and want one that it has."""
    before = await of_the_first_version(engine_url, monkeypatch)
    await before.close()
    raw = await asyncpg.connect(address.dsn, server_settings={"search_path": address.quoted_schema})
    # The migration should be the one that gives way.
    await raw.execute("SET deadlock_timeout = '20s'")
    after = PostgresEngine(engine_url, clock=Clock())
    async with raw.transaction():
        await raw.execute("SELECT FROM history")
        opening = asyncio.create_task(after.open())
        waiting = """
            SELECT count(*) FROM pg_locks
            WHERE NOT granted AND relation = 'history'::regclass
        """
        async with asyncio.timeout(20):
            while not await raw.fetchval(waiting):  # noqa: ASYNC110 - the condition is on the server
                await asyncio.sleep(0.01)
        await raw.execute("SELECT FROM job")
    await opening
    assert (await after.report()).schema_version == NEWEST
    await raw.close()
    await after.close()


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
