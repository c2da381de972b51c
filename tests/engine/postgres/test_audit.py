"""What no constraint of a table forbids, the audit tells."""

from __future__ import annotations

import asyncpg
import pytest

from headrace.engine.postgres.connection.address import Address
from headrace.engine.postgres.engine import PostgresEngine
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import a_worker, claim, complete, enqueue

IMPOSSIBLE = (
    "state = 1",
    "state = 5",
    "pinned = true",
    "width = 0",
    "attempt = 1",
    "attempt = -1",
    "child_group = 'g'",
    "awaits = '[]'",
)


@pytest.mark.parametrize("change", IMPOSSIBLE)
async def test_a_job_that_cannot_be_as_it_is(
    postgres: PostgresEngine, raw: Raw, address: Address, change: str
) -> None:
    job_id = await enqueue(postgres)
    await raw.execute(f"UPDATE {address.quoted_schema}.job SET {change}")
    [finding] = await postgres.audit()
    assert (finding.level, job_id in finding.detail) == ("error", True)
    await raw.execute(f"DELETE FROM {address.quoted_schema}.job")


async def test_nobody_holds_a_job_that_does_not_run(
    postgres: PostgresEngine, raw: Raw, address: Address
) -> None:
    await enqueue(postgres)
    with pytest.raises(asyncpg.CheckViolationError):
        await raw.execute(f"UPDATE {address.quoted_schema}.job SET state = 3")


async def test_a_finished_job_in_a_state_of_others(
    postgres: PostgresEngine, raw: Raw, address: Address
) -> None:
    await enqueue(postgres)
    [job] = await claim(postgres, await a_worker(postgres))
    assert await complete(postgres, job)
    await raw.execute(f"UPDATE {address.quoted_schema}.history SET state = 2")
    [finding] = await postgres.audit()
    assert job.id in finding.detail
    await raw.execute(f"UPDATE {address.quoted_schema}.history SET state = 4")
