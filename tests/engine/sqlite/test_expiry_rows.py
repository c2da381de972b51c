"""Times to start by are kept while they are needed, and cost other jobs nothing."""

from __future__ import annotations

import sqlite3

import pytest

from headrace.engine.sqlite import claim as claim_module
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.engine.sqlite.sql import sql
from headrace.engine.sqlite.upkeep.expire import LOOK_AGAIN_SECONDS
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Cancelled, Completed, Released, Reserved, Settlement, Snoozed
from headrace.model.status import Status
from tests.engine.sqlite.conftest import writer_of
from tests.support.verbs import (
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    fail,
    retry,
    settle,
    status,
)


def kept(behind: sqlite3.Connection) -> int:
    """How many times to start by are in the file."""
    [(count,)] = behind.execute("SELECT count(*) FROM expiry")
    return int(count)


async def test_nothing_is_kept_of_a_job_that_has_started_or_ended(
    sqlite_engine: SqliteEngine, behind: sqlite3.Connection
) -> None:
    worker = await a_worker(sqlite_engine)
    await sqlite_engine.insert([a_job(expires_in=1e6, parent="p") for _ in range(6)])
    jobs = await claim(sqlite_engine, worker, 5)
    assert kept(behind) == 6
    assert await complete(sqlite_engine, jobs[0])
    assert await fail(sqlite_engine, jobs[1])
    assert await retry(sqlite_engine, jobs[2], 1_000.0)
    assert kept(behind) == 3
    assert await settle(sqlite_engine, jobs[3], Snoozed(1_000.0))
    assert await settle(sqlite_engine, jobs[4], Cancelled("enough"))
    assert kept(behind) == 1
    [job] = await claim(sqlite_engine, worker)
    assert await settle(sqlite_engine, job, Released())
    assert kept(behind) == 1
    assert await sqlite_engine.cancel([job.id]) == {job.id: True}
    assert kept(behind) == 0
    found = await sqlite_engine.expire(10)
    assert (found.ids, found.next_in) == ((), None)


async def test_a_job_that_runs_is_looked_at_seldom(sqlite_engine: SqliteEngine) -> None:
    worker = await a_worker(sqlite_engine)
    job_id = await enqueue(sqlite_engine, expires_in=10)
    [job] = await claim(sqlite_engine, worker)
    sqlite_engine.clock.advance(11)
    for _ in range(3):
        found = await sqlite_engine.expire(10)
        assert found.ids == ()
        assert found.next_in == pytest.approx(LOOK_AGAIN_SECONDS, abs=5)
    # Given back, it has expired at once.
    assert await settle(sqlite_engine, job, Released())
    assert (await sqlite_engine.expire(10)).ids == (job_id,)


@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("queues", [1, 2])
async def test_a_claim_passes_over_more_than_it_cancels(
    sqlite_engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, queues: int, reserved: bool
) -> None:
    monkeypatch.setattr(claim_module, "EXPIRE_AT_MOST", 2)
    worker = await a_worker(sqlite_engine)
    names = [f"q{number % queues}" for number in range(20)]
    late = [a_job(queue=name, expires_in=10, priority=5) for name in names]
    await sqlite_engine.insert(late)
    if reserved:
        jobs = await claim(sqlite_engine, worker, 20)
        await sqlite_engine.exchange([Settlement(job.id, job.token, Reserved()) for job in jobs])
    good = [a_job(queue=name, expires_in=1_000) for name in names[:4]]
    await sqlite_engine.insert(good)
    sqlite_engine.clock.advance(11)
    found: list[str] = []
    for _ in range(5):
        found += [job.id for job in await claim(sqlite_engine, worker, 1)]
    assert found == [job.id for job in good]
    statuses = [await status(sqlite_engine, job.id) for job in late]
    assert (statuses.count(Status.CANCELLED), statuses.count(Status.PENDING)) == (10, 10)
    assert len((await sqlite_engine.expire(100)).ids) == 10


async def test_what_an_older_program_left_behind_is_forgotten_in_time(
    sqlite_engine: SqliteEngine, behind: sqlite3.Connection
) -> None:
    await sqlite_engine.insert([a_job(expires_in=10) for _ in range(3)])
    behind.execute("DELETE FROM job WHERE seq = 1")
    behind.execute("UPDATE job SET token = 1, attempt = 1 WHERE seq = 2")
    sqlite_engine.clock.advance(11)
    found = await sqlite_engine.expire(10)
    assert (len(found.ids), found.next_in, kept(behind)) == (1, None, 0)


async def statements_of(
    engine: SqliteEngine, worker: str, jobs: list[ClaimedJob], limit: int
) -> list[str]:
    """The beginnings of the statements of an exchange."""
    statements: list[str] = []
    ended = [Settlement(job.id, job.token, Completed(b"1")) for job in jobs]
    await writer_of(engine).run(lambda it: it.connection.set_trace_callback(statements.append))
    await engine.exchange(ended, worker_id=worker, limit=limit)
    await writer_of(engine).run(lambda it: it.connection.set_trace_callback(None))
    return [each[:60] for each in statements if not each.startswith(("BEGIN", "COMMIT"))]


async def test_jobs_cost_the_same_once_others_have_expired(sqlite_engine: SqliteEngine) -> None:
    """While no job has to start by a time, an exchange has no statement about that."""
    worker = await a_worker(sqlite_engine)
    await sqlite_engine.insert([a_job() for _ in range(20)])
    before = await statements_of(sqlite_engine, worker, await claim(sqlite_engine, worker, 2), 2)
    jobs = await claim(sqlite_engine, worker, 2)
    await enqueue(sqlite_engine, delay=1_000, expires_in=10)
    beside = await statements_of(sqlite_engine, worker, jobs, 2)
    forget = sql.expiry_forget[:60]
    assert [each for each in beside if each != forget] == before
    assert beside.count(forget) == 1
    sqlite_engine.clock.advance(11)
    assert len((await sqlite_engine.expire(10)).ids) == 1
    jobs = await claim(sqlite_engine, worker, 2)
    assert await statements_of(sqlite_engine, worker, jobs, 2) == before
