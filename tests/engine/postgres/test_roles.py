"""A user who may use the tables and change nothing else does all that programs do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

import headrace
from headrace.clock import Clock
from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import EngineError
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import JobFilter
from headrace.model.outcome import Snoozed
from headrace.model.worker import WorkerStats
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle

ROOT = Path(__file__).parents[3]


def documented_grants(schema: str, role: str) -> str:
    """The grants of docs/how-to/operate.md."""
    page = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
    [grants] = [text for text in page.split("```sql\n")[1:] if text.startswith("GRANT")]
    return grants.partition("```")[0].replace("headrace", schema).replace("app_user", role)


@pytest.fixture
async def role(address: Address, engine_url: str) -> AsyncIterator[str]:
    """A user with no rights of its own on a store that another has migrated."""
    owner = PostgresEngine(engine_url, clock=Clock())
    await owner.migrate()
    await owner.close()
    name = f"role_{address.schema}"
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    await connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    await connection.close()


@pytest.fixture
async def limited_url(role: str, address: Address, engine_url: str) -> str:
    connection = await asyncpg.connect(address.dsn)
    await connection.execute(documented_grants(address.schema, role))
    await connection.close()
    return engine_url.replace("postgres@", f"{role}@")


async def test_jobs_are_enqueued_run_and_seen_without_the_right_to_change_tables(
    limited_url: str,
) -> None:
    app = headrace.App(limited_url, migrate="never")

    @app.task(lane="l")
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        job = await double.enqueue(3)
        await headrace.JobOrchestrator(app).run_until_idle()
        assert await app.result(job.id, timeout=5) == 6


async def test_every_group_of_verbs_works_without_the_right_to_change_tables(
    limited_url: str, address: Address
) -> None:
    engine = PostgresEngine(limited_url, clock=Clock())
    await engine.open()
    worker = await a_worker(engine)
    keeper = engine.keeper(worker, 30.0)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)
    first, second = await enqueue(engine, lane="l", key="k"), await enqueue(engine, lane="l")
    await engine.insert([a_job(), a_job(delay=60), a_job(expires_in=60)])
    policy = InsertPolicy(on_duplicate="replace")
    await engine.insert_by_policy(a_job(key="p", lane="p", policy=policy))
    await engine.record_put("kind", "key", b"{}")
    connection = await asyncpg.connect(limited_url.partition("?")[0])
    async with connection.transaction():
        [within] = await engine.insert_within(connection, [a_job(lane="m")])
    await connection.close()
    jobs = await claim(engine, worker, 10)
    assert {first, within.id} <= {job.id for job in jobs}
    assert await settle(engine, jobs[0], Snoozed(60, ()))
    for job in jobs[1:]:
        assert await complete(engine, job)
    assert await engine.rerun([jobs[0].id]) == [jobs[0].id]
    assert await engine.cancel([second]) == {second: True}
    assert await engine.signal(jobs[0].id, "event", b"1") == "delivered"
    await engine.pause("default", True)
    await engine.pause("default", False)
    assert (await engine.list_jobs(JobFilter(), limit=10)).jobs
    assert await engine.queues()
    assert await engine.lanes() is not None
    assert await engine.workers()
    assert (await engine.report()).schema_version > 0
    await engine.promote_due(10)
    assert (await engine.expire(10)).ids == ()
    assert await engine.take_lost(10) == []
    assert await engine.wake([jobs[0].id]) == []
    assert await engine.prune(keep=0) >= 2
    await engine._vacuum.run()
    assert await engine.record_delete("kind", "key")
    assert await engine.audit() == []
    await engine.retire(worker)
    await engine.close()


async def test_without_the_grants_nothing_can_be_used_and_the_remedy_is_named(
    role: str, engine_url: str
) -> None:
    engine = PostgresEngine(engine_url.replace("postgres@", f"{role}@"), clock=Clock())
    with pytest.raises(EngineError, match=r"USAGE is missing.*docs/how-to/operate\.md"):
        await engine.open()


async def test_a_user_without_the_right_is_told_so_when_something_is_missing(
    limited_url: str, address: Address, raw_owner: Raw
) -> None:
    await raw_owner.execute(
        f"DROP FUNCTION {address.quoted_schema}.{await one_function(raw_owner, address)}"
    )
    engine = PostgresEngine(limited_url, clock=Clock())
    with pytest.raises(EngineError, match="Grant the user CREATE"):
        await engine.open()


@pytest.fixture
async def raw_owner(address: Address) -> AsyncIterator[Raw]:
    connection = await asyncpg.connect(address.dsn)
    yield connection
    await connection.close()


async def one_function(raw: Raw, address: Address) -> str:
    """The name of some function of the set that is installed."""
    found: str = await raw.fetchval(
        "SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace ORDER BY 1 LIMIT 1",
        address.schema,
    )
    return found
