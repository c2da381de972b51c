"""What lists and counts leave unread, and which places in lanes are noted."""

from __future__ import annotations

import os

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.job import JobFilter
from headrace.model.outcome import Failed, Failure
from headrace.model.status import Status
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle, the_job


async def test_a_brief_list_does_not_fetch_large_values(postgres: PostgresEngine, raw: Raw) -> None:
    large = b'{"a":"' + os.urandom(20_000).hex().encode() + b'"}'
    await postgres.insert([a_job(args=large, meta=large)])
    schema = postgres.address.schema

    async def fetched() -> int:
        """Blocks of large values that were read, also from memory."""
        # A connection tells its counts when it next comes to rest.
        await postgres._views.fetch("SELECT pg_stat_force_next_flush()")
        blocks: int = await raw.fetchval(
            "SELECT toast_blks_read + toast_blks_hit FROM pg_statio_user_tables"
            " WHERE relname = 'job' AND schemaname = $1",
            schema,
        )
        return blocks

    await postgres.list_jobs(JobFilter(), brief=True)
    before = await fetched()
    [job] = (await postgres.list_jobs(JobFilter(), brief=True)).jobs
    assert (job.args_json, job.meta_json) == (b"{}", None)
    assert await fetched() == before
    [job] = (await postgres.list_jobs(JobFilter())).jobs
    assert job.args_json == job.meta_json == large
    assert await fetched() > before


async def test_counts_and_rare_errors_of_unsuccessful_jobs_leave_the_table_unread(
    postgres: PostgresEngine, raw: Raw
) -> None:
    schema = postgres.address.schema
    await raw.execute(
        f"""INSERT INTO {schema}.history (id, created_at, run_at, completed_at, progress, token,
            attempt, max_attempts, width, state, priority, hold, fail_on_crash, queue, task,
            source, error_type, args)
        SELECT gen_random_uuid(), now(), now(), now(), 0, 1, 1, 1, 1, 5 + n % 3, 0, true, false,
            'default', 'work', 'code', CASE n WHEN 9 THEN 'Rare' ELSE 'Usual' END,
            convert_to(repeat('x', 1500), 'UTF8')
        FROM generate_series(1, 1000) AS n"""
    )
    await raw.execute(f"VACUUM ANALYZE {schema}.history")

    async def pages() -> int:
        await postgres._views.fetch("SELECT pg_stat_force_next_flush()")
        blocks: int = await raw.fetchval(
            "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables"
            " WHERE relname = 'history' AND schemaname = $1",
            schema,
        )
        return blocks

    statuses = (Status.FAILED, Status.TIMEOUT, Status.CANCELLED)
    before = await pages()
    assert (await postgres.count_jobs(JobFilter(statuses=statuses))).count == 1000
    rare = JobFilter(statuses=statuses, error_types=("Rare",), queues=("default",))
    for look in (1000, None):
        assert len((await postgres.list_jobs(rare, look=look, brief=True)).jobs) == 1
    assert await pages() - before < 20


async def test_an_error_type_that_is_longer_than_an_index_entry_is_cut(
    postgres: PostgresEngine,
) -> None:
    worker = await a_worker(postgres)
    job_id = await enqueue(postgres)
    [job] = await claim(postgres, worker)
    long = os.urandom(4_000).hex()
    assert await settle(postgres, job, Failed(Failure(type=long, message="m")))
    assert (await the_job(postgres, job_id)).error_type == long[:500]


async def test_a_place_that_was_free_when_a_job_became_due_is_not_noted(
    postgres: PostgresEngine, clock: Clock
) -> None:
    worker = await a_worker(postgres)
    first = await enqueue(postgres, lane="l", delay=10.0)
    second = await enqueue(postgres, lane="l", delay=10.0)
    clock.advance(15)
    await postgres.promote_due(10)
    [job] = await claim(postgres, worker, 10)
    assert job.id == first
    clock.advance(5)
    await complete(postgres, job)
    assert (await the_job(postgres, first)).admitted_at is None
    waited = await the_job(postgres, second)
    assert waited.admitted_at is not None
    assert (waited.admitted_at - waited.run_at).total_seconds() >= 9
    await postgres.cancel([second])
    assert (await the_job(postgres, second)).admitted_at == waited.admitted_at
