"""Jobs that wait for something without a worker: suspended, signalled, woken."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.awaited import EVENT, Awaited, AwaitedChildren, AwaitedEvent
from headrace.model.durable.writes import Entry, Note
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Settlement, Snoozed
from headrace.model.status import Status
from headrace.model.views import RecordChange
from tests.engine.conftest import Opener
from tests.support.verbs import a_worker, claim, complete, enqueue, retry, settle, status, the_job

APPROVED = AwaitedEvent("approved")
A_DAY = 86_400.0


async def suspend(
    engine: Engine, worker: str, *awaits: Awaited, delay: float = A_DAY, **fields: object
) -> str:
    """A job that has run once and waits now."""
    job_id = await enqueue(engine, **fields)
    [job] = await claim(engine, worker)
    assert job.id == job_id
    assert await settle(engine, job, Snoozed(delay, awaits))
    return job_id


async def test_a_suspended_job_shows_what_it_waits_for(engine: Engine) -> None:
    worker = await a_worker(engine)
    awaits = (APPROVED, AwaitedChildren("pages", 3), AwaitedChildren())
    job_id = await suspend(engine, worker, *awaits)
    job = await the_job(engine, job_id)
    assert (job.status, job.awaits, job.attempt) == (Status.SCHEDULED, awaits, 0)
    page = await engine.list_jobs(JobFilter(statuses=(Status.SCHEDULED,)))
    assert [each.awaits for each in page.jobs] == [awaits]
    assert await engine.suspended() == [job_id]
    assert await claim(engine, worker) == []


async def test_a_suspended_job_goes_on_when_its_time_is_over(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker, APPROVED, delay=60)
    clock.advance(61)
    await engine.promote_due(10)
    assert await engine.suspended() == []
    [job] = await claim(engine, worker)
    assert (job.id, job.attempt, job.token) == (job_id, 1, 2)
    assert (await the_job(engine, job_id)).awaits == ()


async def test_waking_before_the_wait_is_over_changes_nothing(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker, APPROVED)
    before = await the_job(engine, job_id)
    assert await engine.signal(job_id, "something else", b"1") == "delivered"
    assert await engine.wake([job_id, "00000000-0000-7000-8000-000000000000"]) == []
    assert await the_job(engine, job_id) == before
    assert await engine.wake([]) == []


async def test_an_event_wakes_the_job_that_waits_for_it(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker, APPROVED, AwaitedEvent("refused"))
    assert await engine.signal(job_id, "approved", b'{"by":"Ana"}') == "delivered"
    assert await status(engine, job_id) is Status.SCHEDULED
    assert await engine.wake([job_id]) == [job_id]
    assert await engine.wake([job_id]) == []
    assert await engine.suspended() == []
    job = await the_job(engine, job_id)
    assert (job.status, job.awaits) == (Status.PENDING, ())
    [claimed] = await claim(engine, worker)
    assert claimed.id == job_id
    [entry] = await engine.entries(job_id, EVENT)
    assert (entry.name, entry.body, entry.token) == ("approved", b'{"by":"Ana"}', 1)
    assert await complete(engine, claimed)


async def test_an_event_that_came_before_the_wait_counts(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    assert await engine.signal(job_id, "approved", b"1") == "delivered"
    [job] = await claim(engine, worker)
    assert await engine.signal(job_id, "also while it runs", b"2") == "delivered"
    await settle(engine, job, Snoozed(A_DAY, (APPROVED,)))
    assert await engine.wake([job_id]) == [job_id]


async def test_the_first_event_of_a_name_counts(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker, APPROVED)
    assert await engine.signal(job_id, "approved", b"1") == "delivered"
    assert await engine.signal(job_id, "approved", b"2") == "already"
    [entry] = await engine.entries(job_id, EVENT)
    assert entry.body == b"1"


async def test_events_for_finished_and_unknown_jobs_are_told_apart(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    assert await engine.signal(job_id, "early", b"1") == "delivered"
    [job] = await claim(engine, worker)
    await complete(engine, job)
    assert await engine.signal(job_id, "late", b"2") == "finished"
    # A repeat of what did arrive is answered as such.
    assert await engine.signal(job_id, "early", b"1") == "already"
    assert await engine.signal("00000000-0000-7000-8000-000000000000", "e", b"1") == "unknown"
    assert [entry.name for entry in await engine.entries(job_id, EVENT)] == ["early"]


@pytest.mark.parametrize("name", ["승인", "a b/c:d", "e\u0301", "x" * 200])
async def test_event_names_are_kept_as_they_are(engine: Engine, name: str) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker, AwaitedEvent(name))
    assert await engine.signal(job_id, name, b"null") == "delivered"
    assert await engine.wake([job_id]) == [job_id]


async def test_a_sleep_without_conditions_is_not_suspended_and_cannot_be_woken(
    engine: Engine,
) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker)
    await engine.signal(job_id, "approved", b"1")
    assert await engine.suspended() == []
    assert await engine.wake([job_id]) == []


async def test_what_was_awaited_is_forgotten_by_a_retry(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await suspend(engine, worker, APPROVED, delay=60)
    clock.advance(61)
    await engine.promote_due(10)
    [job] = await claim(engine, worker)
    await retry(engine, job, delay=60)
    await engine.signal(job_id, "approved", b"1")
    assert (await the_job(engine, job_id)).awaits == ()
    assert await engine.suspended() == []
    # A retry waits out its back-off, whatever arrives.
    assert await engine.wake([job_id]) == []


async def test_a_suspended_job_can_be_cancelled_and_run_by_hand(engine: Engine) -> None:
    worker = await a_worker(engine)
    cancelled = await suspend(engine, worker, APPROVED)
    assert await engine.cancel([cancelled]) == {cancelled: True}
    assert (await the_job(engine, cancelled)).awaits == ()
    assert await engine.wake([cancelled]) == []
    assert await engine.rerun([cancelled]) == [cancelled]
    assert (await the_job(engine, cancelled)).awaits == ()
    assert await engine.cancel([cancelled]) == {cancelled: True}
    hurried = await suspend(engine, worker, APPROVED)
    assert await engine.rerun([hurried]) == [hurried]
    assert (await the_job(engine, hurried)).awaits == ()
    assert await engine.suspended() == []
    [job] = await claim(engine, worker)
    assert job.id == hurried


async def test_a_cancel_that_came_before_beats_the_wait(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await engine.cancel([job_id]) == {job_id: False}
    await settle(engine, job, Snoozed(A_DAY, (APPROVED,)))
    assert await status(engine, job_id) is Status.CANCELLED
    assert await engine.suspended() == []


async def test_a_late_wait_is_refused(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    late = Settlement(job_id, job.token - 1, Snoozed(A_DAY, (APPROVED,)))
    assert (await engine.exchange([late])).refused == (job_id,)
    assert await engine.suspended() == []
    assert await complete(engine, job)


@pytest.mark.parametrize(("hold", "free"), [(True, 0), (False, 1)])
async def test_a_suspended_job_keeps_its_lane_place_with_hold(
    engine: Engine, hold: bool, free: int
) -> None:
    worker = await a_worker(engine)
    first = await suspend(engine, worker, APPROVED, lane="l", hold=hold)
    second = await enqueue(engine, lane="l", hold=hold)
    jobs = await claim(engine, worker, limit=10)
    assert [job.id for job in jobs] == [second][:free]
    await engine.signal(first, "approved", b"1")
    assert await engine.wake([first]) == [first]
    for job in jobs:
        await complete(engine, job)
    # Woken, it is before the one that came later.
    [job] = await claim(engine, worker)
    assert job.id == first
    await complete(engine, job)


async def test_suspended_jobs_are_read_in_pages(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = sorted([await suspend(engine, worker, APPROVED) for _ in range(7)])
    assert await engine.suspended(limit=3) == ids[:3]
    assert await engine.suspended(after=ids[2], limit=3) == ids[3:6]
    assert await engine.suspended(after=ids[-1]) == []
    for job_id in ids[::2]:
        await engine.signal(job_id, "approved", b"1")
    assert sorted(await engine.wake(ids)) == ids[::2]
    assert await engine.suspended() == ids[1::2]


async def test_a_finished_job_is_run_again_without_some_of_its_entries(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    entries = tuple(Entry("stage", name, b"1") for name in ("one", "two", "three"))
    await engine.write_progress(
        [Note(job.id, job.token, entries=(*entries, Entry("artifact", "two", b"2")))]
    )
    record = RecordChange("replaced", "x", b"1", version=7)
    for token in (job.token, job.token + 1):
        assert not await engine.rerun_without(job_id, [("stage", "one")], token=token)
    assert len(await engine.entries(job_id)) == 4
    await complete(engine, job)
    names = [("stage", "two"), ("stage", "three"), ("stage", "none")]
    for other in (job.token - 1, job.token + 1):
        assert not await engine.rerun_without(job_id, names, token=other, record=record)
    assert len(await engine.entries(job_id)) == 4
    assert await engine.record_get("replaced", "x") is None
    assert await engine.rerun_without(job_id, names, token=job.token, record=record)
    left = [(entry.kind, entry.name) for entry in await engine.entries(job_id)]
    assert left == [("stage", "one"), ("artifact", "two")]
    written = await engine.record_get("replaced", "x")
    assert written is not None
    assert written.body == b"1"
    [again] = await claim(engine, worker)
    assert (again.id, again.attempt, again.token) == (job_id, 1, job.token + 1)
    nobody = "00000000-0000-7000-8000-000000000000"
    assert not await engine.rerun_without(nobody, [("stage", "one")], token=0)


@pytest.mark.parametrize("lane", [None, "l"])
async def test_only_finished_jobs_with_their_tokens_are_run_again(
    engine: Engine, lane: str | None
) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine, lane=lane, width=9) for _ in range(4)]
    jobs = {job.id: job for job in await claim(engine, worker, 4)}
    for each in ids[:3]:
        await complete(engine, jobs[each])
    later = await enqueue(engine, lane=lane, width=9, delay=60.0)
    tokens = {
        ids[2]: 1, ids[0]: 1, ids[1]: 2, ids[3]: 1, later: 0, "unknown": 1, new_id(): 0,
    }  # fmt: skip
    assert await engine.rerun_unchanged(tokens) == [ids[2], ids[0]]
    assert await engine.rerun_unchanged(tokens) == []
    statuses = {each: (await the_job(engine, each)).status for each in (*ids, later)}
    assert list(statuses.values()) == [
        Status.PENDING, Status.COMPLETED, Status.PENDING, Status.RUNNING, Status.SCHEDULED,
    ]  # fmt: skip
    again = await claim(engine, worker, 4)
    assert [(job.id, job.attempt, job.token) for job in again] == [(ids[2], 1, 2), (ids[0], 1, 2)]
    assert await engine.rerun_unchanged({}) == []


@pytest.mark.parametrize("lane", [None, "l"])
async def test_of_several_who_run_jobs_again_by_their_tokens_one_moves_each(
    engine: Engine, open_another: Opener, lane: str | None
) -> None:
    engines = [engine, await open_another(), await open_another()]
    worker = await a_worker(engine)
    for _ in range(5):
        ids = [await enqueue(engine, lane=lane, width=9) for _ in range(6)]
        jobs = await claim(engine, worker, 6)
        for job in jobs:
            await complete(engine, job)
        tokens = {job.id: job.token for job in jobs}
        moved = await asyncio.gather(*(each.rerun_unchanged(tokens) for each in engines))
        assert sorted(each for some in moved for each in some) == sorted(ids)
        for job in await claim(engine, worker, 6):
            await complete(engine, job)


@pytest.mark.parametrize("lane", [None, "l"])
async def test_of_several_who_run_a_job_again_without_entries_one_is_accepted(
    engine: Engine, open_another: Opener, lane: str | None
) -> None:
    engines = [engine, await open_another(), await open_another()]
    worker = await a_worker(engine)
    for number in range(10):
        job_id = await enqueue(engine, lane=lane)
        [job] = await claim(engine, worker)
        await complete(engine, job)
        answers = await asyncio.gather(
            *(
                door.rerun_without(
                    job_id,
                    [],
                    token=job.token,
                    record=RecordChange("replaced", f"{number} {place}", b"1"),
                )
                for place, door in enumerate(engines)
            )
        )
        assert sorted(answers) == [False, False, True]
        [again] = await claim(engine, worker)
        await complete(engine, again)
    assert len(await engine.record_list("replaced")) == 10
