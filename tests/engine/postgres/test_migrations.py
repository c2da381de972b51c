"""Bringing the schema up to date: once, whole, by whoever comes first."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.postgres.connection import migrate as migrate_module
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.connection.migrate import NEWEST
from headrace.engine.postgres.engine import PostgresEngine
from headrace.engine.postgres.sql import query
from headrace.engine.sql_files import Migration, migration
from headrace.errors import EngineError, SchemaTooNew
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.job import JobFilter
from headrace.model.outcome import Snoozed
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, fail, settle

pytestmark = pytest.mark.new_store

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
    known = [each.number for each in migrate_module.KNOWN]
    assert sorted((row[0], row[1]) for row in applied) == [(number, 1) for number in known]


async def test_a_schema_for_newer_programs_is_left_alone(
    postgres: PostgresEngine, engine_url: str, raw: Raw
) -> None:
    schema = postgres.address.quoted_schema
    await raw.execute(f"INSERT INTO {schema}.migration VALUES ({NEWEST + 7}, now(), {NEWEST + 5})")
    old = PostgresEngine(engine_url, clock=Clock())
    match = rf"version {NEWEST + 7}.*know version {NEWEST + 5}.*up to {NEWEST}\. Upgrade"
    with pytest.raises(SchemaTooNew, match=match):
        await old.open()
    await old.close()
    await raw.execute(f"DELETE FROM {schema}.migration WHERE version = {NEWEST + 7}")


async def test_a_migration_that_stops_half_way_leaves_nothing(
    engine_url: str, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [
        *migrate_module.KNOWN[:1],
        migration(3, "0003_half", "CREATE TABLE half (n integer); SELECT 1 / 0"),
    ]
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


# Migrations of this kind meet stores that are full, and programs that are at work.
LATER = migration(
    NEWEST + 1,
    "later",
    "ALTER TABLE job ADD COLUMN colour text; ALTER TABLE history ADD COLUMN colour text;",
)


@contextlib.contextmanager
def knowing(patch: pytest.MonkeyPatch, known: list[Migration]) -> Iterator[None]:
    """A Headrace of an earlier or a later version, as far as migrations go."""
    with patch.context() as other:
        other.setattr(migrate_module, "KNOWN", known)
        other.setattr(migrate_module, "NEWEST", known[-1].number)
        yield


async def test_each_migration_of_a_store_in_use_has_a_transaction_of_its_own(
    postgres: PostgresEngine, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what one has locked is free again before the next waits for another table."""
    broken = migration(NEWEST + 2, "broken", "SELECT 1 / 0")
    with knowing(monkeypatch, [*migrate_module.KNOWN, LATER, broken]):
        engine = PostgresEngine(engine_url, clock=Clock())
        with pytest.raises(Exception, match="division by zero"):
            await engine.open()
        await engine.close()
    assert (await postgres.report()).schema_version == NEWEST + 1


async def test_a_store_from_before_function_sets_is_brought_up_to_date(
    engine_url: str, address: Address
) -> None:
    """Versions 2 to 10 were functions under plain names, in the same schema."""
    raw = await asyncpg.connect(address.dsn)
    tables = migrate_module.KNOWN[0]
    async with raw.transaction():
        await raw.execute(f"CREATE SCHEMA {address.quoted_schema}")
        await raw.execute(f"SET LOCAL search_path = {address.quoted_schema}")
        await raw.execute(query("create_migration"))
        await raw.execute(tables.text)
        await raw.execute("INSERT INTO migration SELECT generate_series(1, 10)")
        await raw.execute("CREATE FUNCTION exchange(n integer) RETURNS integer RETURN n")
        await raw.execute("INSERT INTO queue (name) VALUES ('kept')")
    engine = PostgresEngine(engine_url, clock=Clock())
    await engine.open()
    assert (await engine.report()).schema_version == NEWEST
    old = "SELECT to_regproc($1)"
    assert await raw.fetchval(old, f"{address.quoted_schema}.exchange") is None
    await raw.close()
    assert [queue.name for queue in await engine.queues()] == ["kept"]
    worker = await a_worker(engine)
    await enqueue(engine, lane="l", key="k")
    [job] = await claim(engine, worker)
    assert await complete(engine, job)
    assert await engine.audit() == []
    await engine.close()


async def test_programs_of_version_11_find_lane_admission_by_its_earlier_name(
    postgres: PostgresEngine, raw: Raw
) -> None:
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    await raw.execute("INSERT INTO bell (queue, lane, width) VALUES ('q', 'a', 1), ('q', 'b', 2)")
    assert await raw.fetchval("SELECT count(*) FROM lane_admission") == 2
    taken = """
        DELETE FROM bell b WHERE b.id = ANY (ARRAY(
            SELECT b.id FROM bell b ORDER BY b.id LIMIT 1000 FOR UPDATE SKIP LOCKED
        ))
        RETURNING b.id, b.queue, b.lane, b.width
    """
    async with raw.transaction():
        await raw.execute("SELECT FROM lane_admission WHERE lane = 'a' FOR UPDATE")
        async with postgres._common.hold() as other:
            assert [row["lane"] for row in await other.fetch(taken)] == ["b"]
    assert [row["lane"] for row in await raw.fetch(taken)] == ["a"]


async def test_a_worker_that_an_older_program_registers_again_is_found_when_it_dies(
    postgres: PostgresEngine, raw: Raw, clock: Clock
) -> None:
    """Programs that know version 12 do not know the column that says that it held nothing."""
    worker = await a_worker(postgres)
    clock.advance(100)
    assert await postgres.take_lost(10) == []
    await postgres.prune()
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    marked = "SELECT emptied_of = died_at FROM worker"
    assert await raw.fetchval(marked)
    registered = "UPDATE worker SET died_at = NULL, lease_until = now() + interval '130 s'"
    await raw.execute(registered)
    job_id = await enqueue(postgres)
    [job] = await claim(postgres, worker)
    clock.advance(100)
    assert [each.job.id for each in await postgres.take_lost(10)] == [job_id]
    assert await complete(postgres, job)


async def test_a_later_migration_keeps_jobs_and_disturbs_no_program_at_work(
    engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = PostgresEngine(engine_url, clock=Clock())
    await earlier.open()
    worker = await a_worker(earlier)
    for _ in range(3):
        await enqueue(earlier)
    finished, held, suspended = await claim(earlier, worker, 3)
    await complete(earlier, finished)
    await earlier.insert([a_job(parent=suspended.id, group="a", lane="l") for _ in range(2)])
    awaits = (AwaitedChildren("a"),)
    assert await settle(earlier, suspended, Snoozed(60, awaits))
    scheduled, keyed = await enqueue(earlier, delay=60), await enqueue(earlier, key="k")
    before = (await earlier.list_jobs(JobFilter(), limit=10)).jobs
    assert len(before) == 7

    later = PostgresEngine(engine_url, clock=Clock())
    with knowing(monkeypatch, [*migrate_module.KNOWN, LATER]):
        await later.open()
    assert (await later.report()).schema_version == NEWEST + 1
    assert (await later.list_jobs(JobFilter(), limit=10)).jobs == before
    assert await later.audit() == []

    # The connections of the earlier one have seen the tables as they were.
    [same] = await earlier.insert([a_job(key="k")])
    assert (same.id, same.created) == (keyed, False)
    assert await complete(earlier, held)
    assert await earlier.rerun([finished.id, scheduled]) == [finished.id, scheduled]
    assert await earlier.cancel([keyed]) == {keyed: True}
    while jobs := await claim(earlier, worker, 10):
        for job in jobs:
            assert await complete(earlier, job)
    assert await earlier.wake([suspended.id]) == [suspended.id]
    assert await later.audit() == []
    await earlier.close()
    await later.close()


async def test_a_migration_that_meets_others_at_work_begins_again(
    engine_url: str, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have looked at a table that it wants, and want one that it has."""
    before = PostgresEngine(engine_url, clock=Clock())
    await before.open()
    await before.close()
    raw = await asyncpg.connect(address.dsn, server_settings={"search_path": address.quoted_schema})
    # The migration should be the one that gives way.
    await raw.execute("SET deadlock_timeout = '20s'")
    after = PostgresEngine(engine_url, clock=Clock())
    with knowing(monkeypatch, [*migrate_module.KNOWN, LATER]):
        async with raw.transaction():
            await raw.execute("SELECT FROM history")
            opening = asyncio.create_task(after.open())
            waiting = """
                SELECT count(*) FROM pg_locks
                WHERE NOT granted AND relation = 'history'::regclass
            """
            async with asyncio.timeout(20):
                while not await raw.fetchval(waiting):  # noqa: ASYNC110 - it is on the server
                    await asyncio.sleep(0.01)
            await raw.execute("SELECT FROM job")
        await opening
    assert (await after.report()).schema_version == NEWEST + 1
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
    # Applications that were tested before on this server may have tables of their own there.
    ours = """
        SELECT c.relname FROM pg_class c
        JOIN pg_class own ON own.relname = c.relname AND own.relnamespace = $1::regnamespace
        WHERE c.relnamespace = 'public'::regnamespace
    """
    assert await raw.fetch(ours, postgres.address.quoted_schema) == []
