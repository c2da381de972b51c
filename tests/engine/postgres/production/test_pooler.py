"""Behind PgBouncer everything works, in session mode and in transaction mode."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import uuid4

import asyncpg
import pytest

import headrace
from headrace.bundles.connect import make_engine
from headrace.bundles.tables import TablesAddress
from headrace.clock import Clock
from headrace.engine.postgres.connection import claim_memory
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import InvalidSetting
from tests.conftest import Servers
from tests.engine.postgres.all_verbs import use_all_verbs, use_an_app
from tests.engine.postgres.test_connections import eventually, once_more
from tests.support.pgbouncer import PgBouncer
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue

NOT_OURS = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', $1)
"""
SESSION = """
SELECT current_setting('search_path'), current_setting('jit'), current_setting('enable_seqscan'),
    current_setting('plan_cache_mode'), current_setting('client_min_messages'),
    (SELECT count(*) FROM pg_prepared_statements WHERE name <> ''),
    (SELECT count(*) FROM pg_listening_channels()),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
"""


async def test_every_group_of_verbs_works_behind_a_pooler(
    bouncer: PgBouncer, direct_url: str, servers: Servers
) -> None:
    url = bouncer.in_front_of(direct_url)
    await use_an_app(url)
    await use_all_verbs(url)
    said = bouncer.in_front_of(servers.store("postgres"))
    await use_all_verbs(f"{said}&pooler={bouncer.mode}")


async def test_a_pooler_that_swallows_settings_is_noticed(
    swallower: PgBouncer, direct_url: str
) -> None:
    await use_all_verbs(swallower.in_front_of(direct_url))


async def test_no_table_is_made_in_another_schema(swallower: PgBouncer, servers: Servers) -> None:
    """The database and the schema are new: nothing of ours is there that could be found."""
    schema = f"s{uuid4().hex[:12]}"
    raw = await asyncpg.connect(servers.url("postgres"))
    await raw.execute(f"CREATE DATABASE {schema}")
    base = f"{servers.url('postgres').removesuffix('/postgres')}/{schema}"
    url = f"{base}?schema={schema}"
    try:
        engine = PostgresEngine(swallower.in_front_of(url), clock=Clock())
        assert (await engine.schema()).version == 0
        await engine.open()
        worker = await a_worker(engine)
        await enqueue(engine)
        [job] = await claim(engine, worker)
        assert await complete(engine, job)
        assert await engine.audit() == []
        await engine.close()
        inside = await asyncpg.connect(base)
        found = await inside.fetch(NOT_OURS, schema)
        assert [row[0] for row in found] == []
        assert await inside.fetchval("SELECT to_regclass($1)", f"{schema}.job") is not None
        await inside.close()
    finally:
        await raw.execute(f"DROP DATABASE {schema} WITH (FORCE)")
        await raw.close()


async def test_sessions_of_others_are_left_as_they_were(narrow: PgBouncer, direct_url: str) -> None:
    """All share one session of the server, in turns."""
    url = narrow.in_front_of(direct_url)
    engine = PostgresEngine(url, clock=Clock())
    other = await asyncpg.connect(engine.address.dsn, statement_cache_size=0)
    before = await other.fetchrow(SESSION)
    await engine.open()
    stop = await engine.listen(lambda: None, lambda _: None)
    worker = await a_worker(engine)
    ids = {each.id for each in await engine.insert([a_job(lane="l"), a_job(key="k"), a_job()])}
    jobs = [*await claim(engine, worker, 9)]
    assert {job.id for job in jobs} <= ids
    await asyncio.gather(
        *(complete(engine, job) for job in jobs), engine.queues(), engine.workers()
    )
    # A statement that fails leaves no transaction behind either.
    with pytest.raises(headrace.HeadraceError):
        await engine._common.fetch("SELECT 1 / 0")
    task = asyncio.create_task(engine._common.fetch("SELECT pg_sleep(60)"))
    await eventually(lambda: _sleeps(direct_url))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await engine._common.fetch("SELECT 1")
    stop()
    await engine.close()

    assert await other.fetchrow(SESSION) == before
    await other.close()


async def _sleeps(direct_url: str) -> bool:
    raw = await asyncpg.connect(direct_url.partition("?")[0])
    found = await raw.fetch(
        "SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
    )
    await raw.close()
    return bool(found)


async def test_many_take_turns_in_few_sessions(servers: Servers, direct_url: str) -> None:
    port = servers.running["postgres"].port
    bouncer = PgBouncer(port, "transaction", size=3)
    bouncer.start()
    try:
        await _many_take_turns(bouncer.in_front_of(direct_url))
    finally:
        bouncer.destroy()


async def _many_take_turns(url: str) -> None:
    ran: Counter[str] = Counter()
    apps = [headrace.App(url) for _ in range(4)]
    for each in apps:

        @each.task(name="once")
        async def once(which: str) -> None:
            ran[which] += 1

    async def produce(app: headrace.App, number: int) -> None:
        for n in range(25):
            await app.enqueue("once", {"which": f"{number}-{n}"}, lane=f"l{n % 5}")

    for app in apps:
        await app.open()
    await asyncio.gather(*(produce(app, number) for number, app in enumerate(apps)))
    await asyncio.gather(*(headrace.JobOrchestrator(app).run_until_idle() for app in apps))
    for app in apps:
        await app.close()
    assert len(ran) == 100
    assert set(ran.values()) == {1}


async def test_without_signals_jobs_are_found_and_the_doctor_says_so(
    bouncer: PgBouncer, direct_url: str
) -> None:
    engine = PostgresEngine(bouncer.in_front_of(direct_url), clock=Clock())
    await engine.open()
    stop = await engine.listen(lambda: None, lambda _: None)
    assert not engine.listening
    [finding] = [each for each in (await engine.report()).findings if each.subject == "pooler"]
    assert finding.level == "warning"
    assert "listen=host:port" in (finding.remedy or "")
    stop()
    await engine.close()
    app = headrace.App(bouncer.in_front_of(direct_url))

    @app.task
    async def hello() -> str:
        return "hello"

    async with app, headrace.JobOrchestrator(app):
        job = await hello.enqueue()
        assert await app.result(job.id, timeout=10) == "hello"


async def test_a_pooler_that_is_said_to_keep_sessions_passes_signals_on(
    servers: Servers, direct_url: str
) -> None:
    bouncer = PgBouncer(servers.running["postgres"].port, "session")
    bouncer.start()
    try:
        await _signals_arrive(f"{bouncer.in_front_of(direct_url)}&pooler=session", direct_url)
    finally:
        bouncer.destroy()


async def test_signals_come_past_the_pooler(
    bouncer: PgBouncer, servers: Servers, direct_url: str
) -> None:
    port = servers.running["postgres"].port
    url = f"{bouncer.in_front_of(direct_url)}&listen=127.0.0.1:{port}"
    await _signals_arrive(url, direct_url)


async def _signals_arrive(url: str, direct_url: str) -> None:
    engine = PostgresEngine(url, clock=Clock())
    await engine.open()
    work, cancels = asyncio.Event(), asyncio.Queue[str]()
    stop = await engine.listen(work.set, cancels.put_nowait)
    assert engine.listening
    assert "warning" not in {
        each.level for each in (await engine.report()).findings if each.subject == "pooler"
    }
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    await asyncio.wait_for(work.wait(), 10)
    await claim(engine, worker)
    await engine.cancel([job_id])
    assert await asyncio.wait_for(cancels.get(), 10) == job_id

    # Lost, and found again.
    raw = await asyncpg.connect(direct_url.partition("?")[0])
    work.clear()
    ended = await raw.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert ended
    await asyncio.wait_for(work.wait(), 20)

    async def again() -> bool:
        return engine.listening

    await eventually(again)
    work.clear()
    await once_more(lambda: enqueue(engine))
    await asyncio.wait_for(work.wait(), 10)
    await raw.close()
    stop()
    await engine.close()


async def test_workers_start_where_signals_cannot_be_had(
    bouncer: PgBouncer, direct_url: str
) -> None:
    engine = PostgresEngine(f"{bouncer.in_front_of(direct_url)}&listen=127.0.0.1:1", clock=Clock())
    await engine.open()
    stop = await engine.listen(lambda: None, lambda _: None)
    assert not engine.listening
    assert await enqueue(engine)
    stop()
    await engine.close()


async def test_a_role_without_rights_on_tables_works_behind_a_pooler(
    bouncer: PgBouncer, direct_url: str
) -> None:
    from tests.engine.postgres.test_roles import documented_grants

    role = f"role_{uuid4().hex[:8]}"
    raw = await asyncpg.connect(direct_url.partition("?")[0])
    await raw.execute(f"CREATE ROLE {role} LOGIN; {documented_grants('headrace', role)}")
    bouncer.admit(["postgres", role])
    assert bouncer.process is not None
    bouncer.stop()
    bouncer.start()
    url = bouncer.in_front_of(direct_url).replace("postgres@", f"{role}@")
    try:
        await use_an_app(url)
        await use_all_verbs(f"{url}")
    finally:
        bouncer.stop()
        await raw.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        await raw.close()
        bouncer.start()


async def test_the_server_vacuums_behind_a_pooler(
    bouncer: PgBouncer, direct_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_memory, "VACUUM_EVERY_JOBS", 1)
    engine = PostgresEngine(bouncer.in_front_of(direct_url), clock=Clock())
    await engine.open()
    worker = await a_worker(engine)
    await enqueue(engine)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    raw = await asyncpg.connect(direct_url.partition("?")[0])

    async def vacuumed() -> bool:
        return bool(
            await raw.fetchval("SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'job'")
        )

    await eventually(vacuumed)
    await raw.close()
    await engine.close()


async def test_tables_of_bundles_are_not_made_behind_a_pooler(
    bouncer: PgBouncer, swallower: PgBouncer, direct_url: str
) -> None:
    for pooler in (bouncer, swallower):
        engine = make_engine(
            TablesAddress(pooler.in_front_of(direct_url).partition("?")[0], schema="s"), 2
        )
        with pytest.raises(InvalidSetting, match="cannot be behind a pooler"):
            async with engine.connect():
                pass
        await engine.dispose()
