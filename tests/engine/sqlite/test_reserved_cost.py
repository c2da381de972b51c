"""Reserved jobs that a worker does not know cost its claims nothing."""

from __future__ import annotations

from headrace.engine.sqlite.engine import SqliteEngine
from headrace.engine.sqlite.sql import sql
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Reserved, Settlement
from tests.engine.sqlite.conftest import writer_of
from tests.support.verbs import a_job, a_worker, claim


async def exchanged(engine: SqliteEngine, worker: str, jobs: list[ClaimedJob]) -> list[str]:
    """The beginnings of the statements of an exchange that settles jobs and claims others."""
    statements: list[str] = []
    completed = [Settlement(job.id, job.token, Completed(b"null")) for job in jobs]
    await writer_of(engine).run(lambda it: it.connection.set_trace_callback(statements.append))
    await engine.exchange(completed, worker_id=worker, limit=len(jobs))
    await writer_of(engine).run(lambda it: it.connection.set_trace_callback(None))
    return [each[:60] for each in statements if not each.startswith(("BEGIN", "COMMIT"))]


async def reserve(engine: SqliteEngine, worker: str, tasks: int) -> None:
    """Have a worker leave jobs to others."""
    await engine.insert([a_job(task=f"theirs.{n}", priority=1) for n in range(tasks)])
    theirs = await claim(engine, worker, tasks)
    await engine.exchange([Settlement(job.id, job.token, Reserved()) for job in theirs])
    [queue] = await engine.queues()
    assert len(queue.reserved) == tasks


async def test_a_claim_runs_the_same_statements_with_reserved_jobs_and_without(
    sqlite_engine: SqliteEngine,
) -> None:
    known = tuple(f"task.{n}" for n in range(500))
    worker = await a_worker(sqlite_engine, tasks=("mine", *known))
    await sqlite_engine.insert([a_job(task="mine") for _ in range(20)])
    without = await exchanged(sqlite_engine, worker, await claim(sqlite_engine, worker, 4))
    again = await claim(sqlite_engine, worker, 4)
    await reserve(sqlite_engine, worker, 20)
    # The first claim finds out that none of them is for this worker.
    await claim(sqlite_engine, worker, 1)
    assert await exchanged(sqlite_engine, worker, again) == without
    assert not any(sql.reserved_lines[:60] in each for each in without)


async def test_a_worker_whose_reserved_jobs_are_gone_stops_looking_for_them(
    sqlite_engine: SqliteEngine,
) -> None:
    stranger = await a_worker(sqlite_engine, "stranger", tasks=())
    worker = await a_worker(sqlite_engine, "knows")
    await sqlite_engine.insert([a_job(task="mine") for _ in range(20)])
    without = await exchanged(sqlite_engine, worker, await claim(sqlite_engine, worker, 2))
    await reserve(sqlite_engine, stranger, 5)
    assert [job.task for job in await claim(sqlite_engine, worker, 5)] == [
        f"theirs.{n}" for n in range(5)
    ]
    jobs = await claim(sqlite_engine, worker, 2)
    assert await exchanged(sqlite_engine, worker, jobs) == without
