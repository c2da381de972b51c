"""Files of earlier versions are brought up to date with everything that is in them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from headrace.engine.sqlite.connection import SCHEMA_VERSION
from headrace.engine.sqlite.sql import migrations
from headrace.model.awaited import AwaitedEvent
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Snoozed
from headrace.model.status import Status
from tests.engine.sqlite.conftest import Maker
from tests.support.verbs import a_worker, claim, complete, settle, the_job

INSERT_JOB = """
INSERT INTO job (seq, id, state, token, worker, started_at, attempt, priority, queue, lane, width,
                 hold, run_at, created_at, task, max_attempts, on_crash, source, args)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4, 0, 'default', ?7, 1, 0, ?8, 1.0, 'work', 3, 'retry', 'code',
        '{}')
"""
INSERT_FINISHED = """
INSERT INTO history (id, state, token, attempt, completed_at, cancel_requested, priority, queue,
                     width, hold, run_at, created_at, task, max_attempts, on_crash, source,
                     progress, args, log)
VALUES (?, 4, 1, 1, 2.0, 0, 0, 'default', 1, 0, 1.0, 1.0, 'work', 3, 'retry', 'code', 100, '{}',
        x'')
"""


def a_file_of_version(path: Path, version: int) -> list[str]:
    """A file as that version left it: a job in each state, and a finished one."""
    ids = [new_id() for _ in range(5)]
    connection = sqlite3.connect(path, isolation_level=None)
    for number, statements in migrations():
        if number <= version:
            for statement in statements:
                connection.execute(statement)
    ready, waiting, running, scheduled, finished = ids
    far = 1e10
    connection.execute(INSERT_JOB, (1, ready, 2, 0, None, None, "l", 1.0))
    connection.execute(INSERT_JOB, (2, waiting, 1, 0, None, None, "l", 1.0))
    connection.execute(INSERT_JOB, (3, running, 3, 1, "somebody", 1.0, None, 1.0))
    connection.execute(INSERT_JOB, (4, scheduled, 0, 0, None, None, None, far))
    connection.execute(INSERT_FINISHED, (finished,))
    connection.execute("INSERT INTO lane (queue, lane, width, used) VALUES ('default', 'l', 1, 1)")
    connection.execute("INSERT INTO queue (name) VALUES ('default')")
    connection.execute("UPDATE arrival SET seq = 4")
    connection.close()
    return ids


async def test_a_file_of_the_first_version_is_brought_up_to_date(
    path: Path, open_url: Maker
) -> None:
    ids = a_file_of_version(path, 1)
    engine = await open_url(f"sqlite:///{path}")
    with sqlite3.connect(path) as behind:
        assert behind.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    behind.close()
    jobs = await engine.get(ids)
    assert [job.status for job in jobs] == [
        Status.PENDING,
        Status.PENDING,
        Status.RUNNING,
        Status.SCHEDULED,
        Status.COMPLETED,
    ]
    assert {(job.parent, job.group, job.awaits) for job in jobs} == {(None, None, ())}
    assert await engine.audit() == []


async def test_jobs_of_the_first_version_can_do_what_new_ones_can(
    path: Path, open_url: Maker
) -> None:
    ready, waiting, _, _, finished = a_file_of_version(path, 1)
    engine = await open_url(f"sqlite:///{path}")
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    assert (job.id, job.parent) == (ready, None)
    assert await settle(engine, job, Snoozed(60, (AwaitedEvent("go"),)))
    assert await engine.suspended() == [ready]
    assert await engine.signal(ready, "go", b"1") == "delivered"
    assert await engine.wake([ready]) == [ready]
    assert await engine.rerun([finished]) == [finished]
    for job in await claim(engine, worker, limit=10):
        assert await complete(engine, job)
    [job] = await claim(engine, worker, limit=10)
    assert job.id == waiting
    assert (await the_job(engine, finished)).status is Status.COMPLETED
    assert (await engine.list_jobs(JobFilter(parent=ready))).jobs == []
    assert await engine.audit() == []
