"""Inserts by policy on SQLite: what is undone leaves nothing behind, what is due is not put off."""

from __future__ import annotations

import sqlite3

import pytest

from headrace.engine.sqlite.engine import SqliteEngine
from headrace.model.insert_policy import InsertPolicy
from headrace.model.status import State
from tests.engine.sqlite.conftest import writer_of
from tests.support.processes import until
from tests.support.verbs import a_job, a_worker, claim, enqueue, the_job

DEBOUNCE = InsertPolicy(on_duplicate="debounce")


async def test_a_refused_job_has_not_marked_its_queue(
    sqlite_engine: SqliteEngine, behind: sqlite3.Connection
) -> None:
    """What is rolled back must not be remembered: the next job would not mark the queue either."""
    await enqueue(sqlite_engine, lane="x")
    remembered = writer_of(sqlite_engine)._used_lately
    await until(lambda: bool(remembered))  # the writer answers before it does that
    behind.execute("DELETE FROM queue")
    remembered.clear()
    refused = a_job(lane="x", policy=InsertPolicy(when_full="refuse"))
    assert (await sqlite_engine.insert_by_policy(refused)).inserted is None
    await enqueue(sqlite_engine)
    assert behind.execute("SELECT name FROM queue").fetchall() == [("default",)]


async def test_one_that_is_due_is_not_put_off_although_nobody_has_moved_it(
    sqlite_engine: SqliteEngine,
) -> None:
    """Upkeep that is late must not keep a job from running for ever."""
    first = a_job(key="k", delay=30, policy=DEBOUNCE)
    await sqlite_engine.insert_by_policy(first)
    sqlite_engine.clock.advance(31)
    later = a_job(key="k", delay=30, args=b'{"n":2}', policy=DEBOUNCE)
    await sqlite_engine.insert_by_policy(later)
    assert (await sqlite_engine.promote_due(10)).moved == 1
    worker = await a_worker(sqlite_engine)
    [job] = await claim(sqlite_engine, worker)
    assert (job.id, job.args) == (first.id, b'{"n":2}')


@pytest.mark.parametrize(
    ("delay", "policy"),
    [(0, DEBOUNCE), (100, InsertPolicy(on_duplicate="debounce", max_wait=10))],
)
async def test_one_that_becomes_due_by_a_call_is_ready_at_once(
    sqlite_engine: SqliteEngine, delay: float, policy: InsertPolicy
) -> None:
    first, behind = (a_job(key=key, lane="x", delay=100, policy=DEBOUNCE) for key in ("k", "l"))
    await sqlite_engine.insert_by_policy(first)
    await sqlite_engine.insert_by_policy(behind)
    sqlite_engine.clock.advance(11)
    for key in ("k", "l"):
        await sqlite_engine.insert_by_policy(a_job(key=key, lane="x", delay=delay, policy=policy))
    assert (await the_job(sqlite_engine, first.id)).state is State.READY
    assert (await the_job(sqlite_engine, behind.id)).state is State.WAITING


async def test_a_narrow_lane_that_gets_wider_lets_those_in_first_that_wait(
    sqlite_engine: SqliteEngine,
) -> None:
    """Two places are free for the new one by its width, but two wait."""
    await enqueue(sqlite_engine, lane="x")
    waiting = [await enqueue(sqlite_engine, lane="x") for _ in range(2)]
    refused = a_job(lane="x", width=3, policy=InsertPolicy(when_full="refuse"))
    assert (await sqlite_engine.insert_by_policy(refused)).inserted is None
    # What was tried has not made it wider.
    [lane] = await sqlite_engine.lanes()
    assert (lane.width, lane.used, lane.waiting) == (1, 1, 2)
    newest = a_job(lane="x", width=3, policy=InsertPolicy(when_full="replace"))
    answer = await sqlite_engine.insert_by_policy(newest)
    assert sorted(answer.cancelled) == sorted(waiting)
    assert (await the_job(sqlite_engine, newest.id)).state is State.READY
