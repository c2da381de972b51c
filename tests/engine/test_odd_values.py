"""Values that nobody should send: kept as well as can be, and never a harm to others."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.writes import Note
from headrace.model.job import JobFilter
from headrace.model.outcome import Completed, Retry, Settlement, Snoozed
from headrace.model.status import Status
from headrace.model.times import LATEST
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    settle,
    status,
    the_job,
)


@pytest.mark.parametrize("delay", [math.nan, -1.0, -math.inf])
async def test_a_delay_that_is_none_is_over_at_once(engine: Engine, delay: float) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    answer = await engine.exchange(
        [
            Settlement(one.id, one.token, Retry(A_FAILURE, delay)),
            Settlement(two.id, two.token, Snoozed(delay)),
        ]
    )
    assert answer.refused == ()
    assert {job.id for job in await claim(engine, worker, 5)} == {one.id, two.id}


async def test_a_delay_without_end_is_a_very_long_one(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await settle(engine, job, Retry(A_FAILURE, math.inf))
    clock.advance(365 * 86_400)
    await engine.promote_due(10)
    assert await status(engine, job_id) is Status.SCHEDULED
    await engine.list_jobs(JobFilter(statuses=(Status.SCHEDULED,)))


LAST_MICROSECOND = 253_402_300_799.999999
YEAR_ONE = -62_135_596_800.0
HUGE = pytest.param(10**400, id="huge")


@pytest.mark.parametrize("run_at", [LAST_MICROSECOND, LATEST, 1e15, math.inf, HUGE])
async def test_a_time_beyond_all_calendars_is_kept_as_the_last_that_can_be_read(
    engine: Engine, clock: Clock, run_at: float
) -> None:
    worker = await a_worker(engine)
    jobs = [a_job(run_at=run_at), a_job(), a_job(run_at=run_at, lane="a", key="b")]
    assert all(each.created for each in await engine.insert(jobs))
    assert all(each.created for each in await engine.insert([a_job(run_at=run_at)]))
    page = await engine.list_jobs(JobFilter(statuses=(Status.SCHEDULED,)))
    assert [job.run_at for job in page.jobs] == [datetime(9999, 1, 1, tzinfo=UTC)] * 3
    assert (await the_job(engine, jobs[0].id)).run_at == page.jobs[0].run_at
    assert [job.id for job in await claim(engine, worker, 5)] == [jobs[1].id]
    clock.advance(365 * 86_400)
    await engine.promote_due(10)
    assert await status(engine, jobs[0].id) is Status.SCHEDULED
    assert jobs[0].id in await engine.rerun([jobs[0].id])


@pytest.mark.parametrize("run_at", [YEAR_ONE, -1e15, -1e300, -math.inf, math.nan])
async def test_a_time_before_all_calendars_is_due_at_once(engine: Engine, run_at: float) -> None:
    worker = await a_worker(engine)
    jobs = [a_job(run_at=run_at), a_job(run_at=run_at, lane="a", key="b")]
    assert all(each.created for each in await engine.insert(jobs))
    page = await engine.list_jobs(JobFilter())
    assert [round(job.run_at.timestamp()) for job in page.jobs] == [0, 0]
    assert await engine.queues()
    assert {job.id for job in await claim(engine, worker, 5)} == {job.id for job in jobs}
    assert {job.id for job in await engine.claimed_by(worker)} == {job.id for job in jobs}


@pytest.mark.parametrize(
    ("delay", "days"),
    [(math.nan, 0), (-1.0, 0), (3650 * 86_400.0, 3650), (math.inf, 36_500)],
)
async def test_a_new_job_is_put_off_as_long_on_every_engine(
    engine: Engine, clock: Clock, delay: float, days: int
) -> None:
    jobs = [a_job(delay=delay), a_job(), a_job(delay=delay, lane="a", key="b")]
    await engine.insert(jobs)
    await engine.insert([one := a_job(delay=delay)])
    for job_id in (jobs[0].id, jobs[2].id, one.id):
        seen = await the_job(engine, job_id)
        assert abs(seen.run_at.timestamp() - clock.now() - days * 86_400) < 60


@pytest.mark.parametrize("run_at", [LAST_MICROSECOND, 5e12, math.inf, -(10.0**11), -math.inf])
async def test_a_time_that_was_stored_unread_is_shown_as_the_nearest_that_can_be(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, run_at: float
) -> None:
    """As earlier versions may have left one behind: it must not hide the others."""
    rooms = {"sqlite": "sqlite.insert", "postgres": "postgres.columns", "redis": "redis.codec"}
    with monkeypatch.context() as earlier:
        earlier.setattr(f"headrace.engine.{rooms[engine.name]}.kept_time", lambda given: given)
        odd, child = a_job(run_at=run_at), a_job(run_at=run_at, parent=(parent := a_job()).id)
        await engine.insert([odd, parent, child])
    nearest = [datetime(1970 if run_at < 0 else 9999, 1, 1, tzinfo=UTC)]
    page = await engine.list_jobs(JobFilter())
    assert [job.run_at for job in page.jobs if job.id == odd.id] == nearest
    assert [job.run_at for job in await engine.get([odd.id])] == nearest
    page = await engine.list_jobs(JobFilter(parent=parent.id))
    assert [job.run_at for job in page.jobs] == nearest
    await engine.cancel([odd.id, child.id])
    assert [job.run_at for job in await engine.get([odd.id])] == nearest


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
async def test_jobs_are_found_by_times_at_the_ends_of_the_calendar(
    engine: Engine, moment: datetime
) -> None:
    await engine.insert([a_job()])
    for hours in (-14, 0, 14):
        edge = moment.replace(tzinfo=timezone(timedelta(hours=hours)))
        after = await engine.list_jobs(JobFilter(created_after=edge))
        before = await engine.list_jobs(JobFilter(created_before=edge))
        assert (len(after.jobs), len(before.jobs)) == ((1, 0) if moment.year == 1 else (0, 1))


@pytest.mark.parametrize("age", [1e11, 1e300, math.inf])
async def test_nothing_is_older_than_all_calendars(engine: Engine, age: float) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    assert await engine.prune(older_than=age) == 0
    assert await status(engine, job.id) is Status.COMPLETED


@pytest.mark.parametrize("result", [b"\xff", b"\x00", b'"\xed\xa0\x80"'])
async def test_a_result_is_kept_byte_by_byte(engine: Engine, result: bytes) -> None:
    """What is no JSON is the caller's mistake, but no reason to lose that the job is done."""
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    answer = await engine.exchange(
        [
            Settlement(one.id, one.token, Completed(result)),
            Settlement(two.id, two.token, Completed(b"2")),
        ]
    )
    assert answer.refused == ()
    seen = await engine.get([one.id, two.id])
    assert [job.status for job in seen] == [Status.COMPLETED, Status.COMPLETED]
    assert [job.result_json for job in seen] == [result, b"2"]


@pytest.mark.parametrize("progress", [-5.0, 250.0, 1e300, math.inf, -math.inf, math.nan])
async def test_an_odd_progress_does_not_disturb_the_others(engine: Engine, progress: float) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    await engine.write_progress([Note(one.id, one.token, progress=7.0)])
    assert (
        await engine.write_progress(
            [Note(one.id, one.token, "s", progress, "m"), Note(two.id, two.token, progress=9.0)]
        )
        == ()
    )
    seen = await the_job(engine, one.id)
    # Told as it is; what is not a number is not told.
    assert seen.progress == (7.0 if math.isnan(progress) else progress)
    assert (seen.stage, seen.message) == ("s", "m")
    assert (await the_job(engine, two.id)).progress == 9.0
    await complete(engine, one)
    assert (await the_job(engine, one.id)).progress == 100.0
