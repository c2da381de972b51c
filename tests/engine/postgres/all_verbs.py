"""One call of each group of verbs, for connections and rights of any kind."""

from __future__ import annotations

import asyncio

import asyncpg

import headrace
from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.insert_policy import InsertPolicy
from headrace.model.job import JobFilter
from headrace.model.outcome import Snoozed
from headrace.model.worker import WorkerStats
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle


async def use_an_app(url: str) -> None:
    """Jobs are enqueued, run and seen by an App that changes no tables."""
    app = headrace.App(url, migrate="never")

    @app.task(lane="l")
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        job = await double.enqueue(3)
        await headrace.JobOrchestrator(app).run_until_idle()
        assert await app.result(job.id, timeout=5) == 6


async def use_all_verbs(url: str, *, caller: str | None = None) -> None:
    """The verbs of an engine; `caller` is where the transaction of a caller is, if elsewhere."""
    engine = PostgresEngine(url, clock=Clock())
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
    connection = await asyncpg.connect(caller or engine.address.dsn, statement_cache_size=0)
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
    await engine._vacuum._link.alone(f"VACUUM {engine.address.quoted_schema}.job")
    await engine._vacuum.run()
    assert await engine.record_delete("kind", "key")
    assert await engine.audit() == []
    await engine.retire(worker)
    await engine.close()
