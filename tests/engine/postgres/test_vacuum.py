"""A large backlog does not slow down its own end."""

from __future__ import annotations

import asyncio

import pytest

from headrace.engine.postgres.connection import claim_memory as claim_module
from headrace.engine.postgres.engine import PostgresEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_job, a_worker

VACUUMS = "SELECT vacuum_count FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'job'"


async def test_what_jobs_leave_behind_is_cleared_away(
    postgres: PostgresEngine, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_module, "VACUUM_EVERY_JOBS", 300)
    worker = await a_worker(postgres)
    await postgres.insert([a_job() for _ in range(1_000)])
    settlements: list[Settlement] = []
    while True:
        answer = await postgres.exchange(settlements, worker_id=worker, limit=100)
        settlements = [Settlement(job.id, job.token, Completed()) for job in answer.jobs]
        if not settlements:
            break
    async with asyncio.timeout(20):
        while not await raw.fetchval(VACUUMS, postgres.address.schema):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_looking_for_work_in_vain_writes_nothing(postgres: PostgresEngine, raw: Raw) -> None:
    """Idle workers poll; a transaction number each would be a flush to disk each."""
    worker = await a_worker(postgres)
    next_transaction = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    before = await raw.fetchval(next_transaction)
    for _ in range(50):
        assert (await postgres.exchange([], worker_id=worker, limit=10)).jobs == []
        assert (await postgres.promote_due(10)).moved == 0
        assert await postgres.take_lost(10) == []
    # The server may have had something to do for itself.
    assert await raw.fetchval(next_transaction) - before < 20
