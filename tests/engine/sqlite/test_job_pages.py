"""Pages of jobs on SQLite: every way to them finds the same, and what they leave unread."""

from __future__ import annotations

import itertools
import random
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.sqlite import job_list
from headrace.engine.sqlite.sql import query
from headrace.model.job import Job, JobFilter
from headrace.model.outcome import Completed, Failed, Failure, Outcome, Retry
from headrace.model.status import Status
from tests.engine.sqlite.conftest import Maker
from tests.support.verbs import a_worker, claim, complete, enqueue, settle, the_job

LARGE = {"args", "meta", "log", "result"}
OUTCOMES: list[Outcome | None] = [
    Completed(b"1"),
    Failed(Failure(type="E", message="e")),
    Failed(Failure(type="F", message="f")),
    Retry(Failure(type="E", message="e"), 60.0),
    None,
]


async def fill(engine: Engine, clock: Clock) -> list[Job]:
    """Jobs in every state, that end in another order than they were made in."""
    chance = random.Random(7)
    workers = [await a_worker(engine, f"w{number}") for number in range(2)]
    for number in range(60):
        lane = "l" if number % 6 == 0 else None
        delay = 60.0 if number % 7 == 0 else 0.0
        await enqueue(engine, queue=f"q{number % 3}", task=f"t{number % 4}", lane=lane, delay=delay)
        if number % 2:
            for job in await claim(engine, chance.choice(workers), 1, [f"q{chance.randrange(3)}"]):
                clock.advance(10)
                if (outcome := chance.choice(OUTCOMES)) is not None:
                    assert await settle(engine, job, outcome)
    return (await engine.list_jobs(JobFilter(), limit=1_000)).jobs


def expected(jobs: list[Job], filter: JobFilter) -> list[str]:
    after, before = filter.finished_after, filter.finished_before
    return [
        job.id
        for job in jobs
        if (not filter.statuses or job.status in filter.statuses)
        and (not filter.tasks or job.task in filter.tasks)
        and (not filter.error_types or job.error_type in filter.error_types)
        and (filter.worker is None or job.worker == filter.worker)
        and (after is None or (job.completed_at is not None and job.completed_at >= after))
        and (before is None or (job.completed_at is not None and job.completed_at < before))
    ]


@pytest.mark.parametrize("few", [0, 1_000])
async def test_every_way_to_a_page_finds_the_same(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(job_list, "FEW", few)
    monkeypatch.setattr(job_list, "FEW_FINISHED", few)
    engine = await open_url(f"sqlite:///{path}")
    jobs = await fill(engine, engine.clock)
    # Moments between two ends: what is shown is rounded.
    ends = sorted(
        job.completed_at - timedelta(seconds=5) for job in jobs if job.completed_at is not None
    )
    assert len(jobs) == 60
    assert len(ends) > 10
    middle = ends[len(ends) // 2]
    statuses = [
        (), (Status.PENDING,), (Status.SCHEDULED, Status.RUNNING), (Status.COMPLETED,),
        (Status.FAILED, Status.TIMEOUT), (Status.PENDING, Status.FAILED),
    ]  # fmt: skip
    others: list[dict[str, object]] = [
        {}, {"tasks": ("t1", "t2")}, {"error_types": ("E",)}, {"worker": "w1"},
        {"finished_after": middle}, {"finished_before": middle},
        {"finished_after": ends[2], "finished_before": ends[-2], "error_types": ("F",)},
    ]  # fmt: skip
    for chosen, other in itertools.product(statuses, others):
        filter = JobFilter(statuses=chosen, **other)  # type: ignore[arg-type]
        wanted = expected(jobs, filter)
        for limit, look in ((7, None), (7, 5), (3, 20), (100, 2)):
            ids: list[str] = []
            cursor = None
            while True:
                page = await engine.list_jobs(filter, cursor=cursor, limit=limit, look=look)
                assert len(page.jobs) <= limit
                ids += [job.id for job in page.jobs]
                if page.cursor is None:
                    break
                cursor = page.cursor
            assert ids == wanted, (filter, limit, look)
        count = await engine.count_jobs(filter)
        assert (count.count, count.complete) == (len(wanted), True)


async def test_a_clock_that_was_set_back_a_little_hides_no_job(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_url(f"sqlite:///{path}")
    worker = await a_worker(engine)
    start = engine.clock.utcnow()
    for offset in (100, 200, 150, 160, 170, 180, 190, 300):
        engine.clock.offset = offset
        await enqueue(engine)
        [job] = await claim(engine, worker)
        await complete(engine, job)
    for few in (0, 1_000):
        monkeypatch.setattr(job_list, "FEW_FINISHED", few)
        window = JobFilter(finished_after=start + timedelta(seconds=195))
        assert len((await engine.list_jobs(window)).jobs) == 2
        window = JobFilter(finished_before=start + timedelta(seconds=195))
        assert len((await engine.list_jobs(window)).jobs) == 6


@pytest.mark.parametrize("name", ["get_finished_brief", "get_unfinished_brief"])
async def test_brief_jobs_are_read_without_the_large_columns(
    path: Path, open_url: Maker, name: str
) -> None:
    """Large values are on pages of their own, which are read only for a column that is named."""
    await open_url(f"sqlite:///{path}")
    connection = sqlite3.connect(path)
    assert not columns_read(connection, name) & LARGE
    assert columns_read(connection, name.removesuffix("_brief")) >= {"args", "meta", "log"}
    connection.close()


def columns_read(connection: sqlite3.Connection, name: str) -> set[str]:
    """The columns of the table of jobs that a statement reads, from its program."""
    table = "job" if "unfinished" in name else "history"
    [(root,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    steps = connection.execute(f"EXPLAIN {query(name)}", ("[]",)).fetchall()
    cursors = {step[2] for step in steps if step[1] == "OpenRead" and step[3] == root}
    return {columns[step[3]] for step in steps if step[1] == "Column" and step[2] in cursors}


async def test_a_job_that_is_admitted_as_it_comes_has_not_waited(
    path: Path, open_url: Maker
) -> None:
    engine = await open_url(f"sqlite:///{path}")
    worker = await a_worker(engine)
    # Due for a minute before anybody looked: that is not the lane's doing.
    late = await enqueue(engine, lane="a", delay=60.0)
    engine.clock.advance(120)
    assert (await engine.promote_due(10)).moved == 1
    assert (await the_job(engine, late)).admitted_at is None
    wide = [await enqueue(engine, lane="b", width=2) for _ in range(3)]
    assert [(await the_job(engine, each)).admitted_at for each in wide] == [None] * 3
    # The third has waited when a fourth makes the lane wider; the fourth has not.
    engine.clock.advance(10)
    fourth = await enqueue(engine, lane="b", width=4)
    assert (await the_job(engine, fourth)).admitted_at is None
    admitted = (await the_job(engine, wide[2])).admitted_at
    assert admitted is not None
    for job in await claim(engine, worker, 10):
        assert await complete(engine, job)
    assert (await the_job(engine, wide[2])).admitted_at == admitted


async def test_a_job_that_was_put_back_has_waited(path: Path, open_url: Maker) -> None:
    engine = await open_url(f"sqlite:///{path}")
    worker = await a_worker(engine)
    beaten = await enqueue(engine, lane="l")
    better = await enqueue(engine, lane="l", priority=5)
    assert (await the_job(engine, better)).admitted_at is None
    [job] = await claim(engine, worker)
    assert job.id == better
    engine.clock.advance(30)
    await complete(engine, job)
    shown = await the_job(engine, beaten)
    assert shown.admitted_at is not None
    assert shown.admitted_at > shown.run_at + timedelta(seconds=29)
