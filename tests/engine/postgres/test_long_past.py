"""Queues and workers that came and went are not looked at, by the rows that the server touches."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.ids import new_id
from headrace.model.outcome import Completed, Settlement
from headrace.model.worker import WorkerInfo
from tests.engine.postgres.conftest import Raw
from tests.engine.postgres.plans import Plans, explained, nodes
from tests.support.verbs import LEASE, a_job, a_worker

MANY = 2_000
FEW = 20


def judge(plans: Plans, verb: str, *, gone: bool = False) -> None:
    """`gone`: rows that are not there any more count, too, where the server looks at them."""
    assert plans.heard, f"{verb}: nothing was explained"
    for statement, plan in plans.heard:
        for node in nodes(plan):
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            touched = rows * node["Actual Loops"] + gone * node.get("Heap Fetches", 0)
            assert touched <= FEW, f"{verb}: {node['Node Type']} in {statement[:300]}"
    plans.heard.clear()


async def finish_many(engine: PostgresEngine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(queue=f"once-{n}") for n in range(MANY)])
    while jobs := (await engine.exchange([], worker_id=worker, limit=500)).jobs:
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])


async def test_what_came_and_went_today_is_not_looked_at(
    postgres: PostgresEngine, engine_url: str, clock: Clock, raw: Raw
) -> None:
    await finish_many(postgres)
    for n in range(MANY // 4):
        await a_worker(postgres, f"gone-{n}", tasks=("some", "tasks"))
    clock.advance(LEASE + 1)
    await postgres.take_lost(10)
    assert not any(each.alive for each in await postgres.workers())
    while await postgres.prune(keep=0):
        pass
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    for statistics in ("SELECT 1", "VACUUM ANALYZE"):
        await raw.execute(statistics)
        async with explained(engine_url) as (engine, plans):
            await a_worker(engine, "new")
            judge(plans, "register")
            await engine.take_lost(10)
            judge(plans, "lost")
            await engine.prune(keep=0)
            judge(plans, "prune")


async def test_a_dead_worker_that_holds_something_is_asked_for_it_until_it_is_settled(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    await postgres.insert([a_job()])
    [job] = (await postgres.exchange([], worker_id=worker, limit=1)).jobs
    clock.advance(LEASE + 1)
    for _ in range(3):
        await postgres.prune(older_than=None)
        assert [each.job.id for each in await postgres.take_lost(10)] == [job.id]
    await postgres.exchange([Settlement(job.id, job.token, Completed())])
    await postgres.prune(older_than=None)
    assert await postgres.take_lost(10) == []


async def test_a_worker_with_a_claim_under_way_is_not_marked(
    postgres: PostgresEngine, raw: Raw
) -> None:
    worker = await a_worker(postgres, "replaced")
    await postgres.insert([a_job()])
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    async with raw.transaction():
        # What a claim does, and then takes its time.
        number = await raw.fetchval("SELECT number FROM worker WHERE id = $1 FOR KEY SHARE", worker)
        await raw.execute(
            "UPDATE job SET state = 3, holder = $1, worker = 'worker', token = 1, attempt = 1,"
            " started_at = now()",
            number,
        )
        await a_worker(postgres, "replaced")
        assert await postgres.take_lost(10) == []
        await postgres.prune(older_than=None)
    assert len(await postgres.take_lost(10)) == 1


async def test_a_worker_that_registers_again_is_not_marked(
    postgres: PostgresEngine, clock: Clock
) -> None:
    again = WorkerInfo(id=new_id(), name="again", host="here", pid=1, version="0")
    await postgres.register(again, LEASE)
    clock.advance(LEASE + 1)
    await postgres.take_lost(10)
    await postgres.prune(older_than=None)
    await postgres.register(again, LEASE)
    await postgres.insert([a_job()])
    [job] = (await postgres.exchange([], worker_id=again.id, limit=1)).jobs
    clock.advance(LEASE + 1)
    for _ in range(2):
        assert [each.job.id for each in await postgres.take_lost(10)] == [job.id]


async def test_an_insert_does_not_pass_over_history_that_was_pruned(
    postgres: PostgresEngine, engine_url: str, raw: Raw
) -> None:
    await raw.execute(f"SET search_path = {postgres.address.quoted_schema}")
    await raw.execute("ALTER TABLE history SET (autovacuum_enabled = off)")
    await finish_many(postgres)
    async with explained(engine_url) as (engine, plans):
        assert await engine.prune(keep=0, limit=MANY) == MANY
        plans.heard.clear()
        await engine.insert([a_job(lane=f"lane-{n}", queue=f"q-{n}") for n in range(5)])
        judge(plans, "insert", gone=True)
