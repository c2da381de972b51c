"""A server that was restored to an earlier time, or replaced by a replica that lagged behind."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

import asyncpg
import pytest

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.job import NewJob
from headrace.model.views import RecordChange
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue

WAYS_IN: dict[str, Sequence[NewJob]] = {
    "one": [a_job(queue="mail")],
    "one with a key": [a_job(queue="mail", key="k")],
    "several": [a_job(queue="mail"), a_job(queue="mail", priority=3)],
    "alike": [a_job(queue="mail"), a_job(queue="mail")],
    "in a lane": [a_job(queue="mail", lane="l", key="k2")],
    "with a record": [a_job(queue="mail")],
}


async def use_the_queue(postgres: PostgresEngine) -> str:
    """The engine stores a job in the queue "mail" and works it off; answers the worker."""
    await enqueue(postgres, queue="mail")
    worker = await a_worker(postgres)
    [job] = await claim(postgres, worker)
    await complete(postgres, job)
    return worker


async def lose_queues(raw: Raw, address: Address) -> None:
    """All rows of queues are gone, as if they had been made after the time of the restore."""
    await raw.execute(f"DELETE FROM {address.quoted_schema}.queue")


async def lose_connections(postgres: PostgresEngine, raw: Raw) -> None:
    """Every connection of the engine ends, as it does when its server does."""
    for link in (postgres._exchanges, postgres._common, postgres._views):
        if link._connection is not None and not link._connection.is_closed():
            pid = link._connection.get_server_pid()
            await raw.fetchval("SELECT pg_terminate_backend($1, 10000)", pid)


async def test_jobs_stored_after_a_restore_are_run(
    postgres: PostgresEngine, address: Address, raw: Raw
) -> None:
    worker = await use_the_queue(postgres)
    for way_in, jobs in WAYS_IN.items():
        await lose_queues(raw, address)
        await lose_connections(postgres, raw)
        record = RecordChange("cron", "x", b"1") if way_in == "with a record" else None
        await postgres.insert(jobs, record=record)
        claimed = await claim(postgres, worker, 10)
        assert {job.id for job in claimed} == {job.id for job in jobs}, way_in
        for job in claimed:
            await complete(postgres, job)


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read"])
async def test_jobs_of_a_callers_transaction_are_run_after_a_restore_that_only_the_caller_met(
    postgres: PostgresEngine, address: Address, raw: Raw, isolation: Any
) -> None:
    worker = await use_the_queue(postgres)
    await lose_queues(raw, address)
    connection = await asyncpg.connect(address.dsn)
    async with connection.transaction(isolation=isolation):
        [answer] = await postgres.insert_within(connection, [a_job(queue="mail", key="k")])
        # It is there before the commit, and it is not the caller's: nobody waits for it.
        table = f"{address.quoted_schema}.queue"
        assert await raw.fetch(f"SELECT FROM {table} WHERE name = 'mail' FOR UPDATE NOWAIT") != []
        [again] = await postgres.insert_within(connection, [a_job(queue="mail", key="k")])
    await connection.close()
    assert (answer.created, again.created, again.id) == (True, False, answer.id)
    assert [job.id for job in await claim(postgres, worker, 10)] == [answer.id]


async def test_jobs_of_a_queue_whose_row_is_missing_are_run_and_shown(
    postgres: PostgresEngine, address: Address, raw: Raw
) -> None:
    """A dump that is read back leaves connections as they are."""
    worker = await use_the_queue(postgres)
    ids = await postgres.insert([a_job(queue=name) for name in ("a", "mail", "z")])
    await lose_queues(raw, address)
    assert [queue.name for queue in await postgres.queues()] == ["a", "mail", "z"]
    assert await postgres.audit() == []
    assert [job.id for job in await claim(postgres, worker, 1, ["mail"])] == [ids[1].id]
    assert [job.id for job in await claim(postgres, worker, 10)] == [ids[0].id, ids[2].id]


async def test_a_claim_on_a_new_connection_looks_at_the_whole_line(
    postgres: PostgresEngine, raw: Raw
) -> None:
    worker = await use_the_queue(postgres)
    [cursor] = postgres._cursors.values()
    # As after full scans that took long: the next begin with the job that was found first.
    for _ in range(2):
        cursor.scanned(monotonic(), start=0, first_seq=1_000_000, short=False, seconds=60.0)
    await enqueue(postgres, queue="mail")
    assert await claim(postgres, worker) == []
    await lose_connections(postgres, raw)
    await claim(postgres, worker)
    [job] = await claim(postgres, worker)
    assert job.queue == "mail"
