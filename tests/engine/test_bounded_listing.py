"""Lists for pages: by error, worker and end, without large fields, and with a bound on the work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import InvalidInput
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Completed, Failed, Failure, Outcome, Retry, TimedOut
from headrace.model.status import Status
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, settle, the_job


async def ended(engine: Engine, worker: str, outcome: Outcome, **fields: object) -> str:
    """A job that this worker has run, with this outcome."""
    job_id = await enqueue(engine, **fields)
    [job] = await claim(engine, worker, 1, [str(fields.get("queue", "default"))])
    assert job.id == job_id
    assert await settle(engine, job, outcome)
    return job_id


def failed(kind: str, message: str = "it broke") -> Failed:
    return Failed(Failure(type=kind, message=message))


async def found(engine: Engine, **fields: object) -> list[str]:
    """All that match, by pages of two, and by pages whose work is bounded."""
    filter = JobFilter(**fields)  # type: ignore[arg-type]
    ways = []
    for more in ({"limit": 2}, {"limit": 2, "look": 3, "brief": True}, {"limit": 100, "look": 1}):
        ids: list[str] = []
        cursor = None
        while True:
            page = await engine.list_jobs(filter, cursor=cursor, **more)  # type: ignore[arg-type]
            ids += [job.id for job in page.jobs]
            if page.cursor is None:
                break
            assert cursor is None or page.cursor < cursor
            cursor = page.cursor
        ways.append(ids)
    assert ways[0] == ways[1] == ways[2]
    assert ways[0] == sorted(ways[0], reverse=True)
    count = await engine.count_jobs(filter)
    assert (count.count, count.complete) == (len(ways[0]), True)
    return ways[0]


async def test_jobs_are_found_by_the_type_of_their_error(engine: Engine) -> None:
    worker = await a_worker(engine)
    one = await ended(engine, worker, failed("ValueError"))
    two = await ended(engine, worker, TimedOut(Failure(type="TimeoutError", message="slow")))
    await ended(engine, worker, Completed(b"1"))
    three = await ended(engine, worker, failed("ValueError"), task="other")
    again = await ended(engine, worker, Retry(Failure(type="ValueError", message="x"), 60.0))
    await enqueue(engine)
    assert await found(engine, error_types=("ValueError",)) == [again, three, one]
    assert await found(engine, error_types=("ValueError", "TimeoutError")) == [
        again, three, two, one,
    ]  # fmt: skip
    statuses = (Status.FAILED, Status.TIMEOUT)
    assert await found(engine, error_types=("ValueError",), statuses=statuses) == [three, one]
    assert await found(engine, error_types=("ValueError",), tasks=("other",)) == [three]
    assert await found(engine, error_types=("valueerror",)) == []
    await engine.rerun([one])
    assert await found(engine, error_types=("ValueError",)) == [again, three]


async def test_jobs_are_found_by_the_worker_that_shows(engine: Engine) -> None:
    first, second = await a_worker(engine, "first"), await a_worker(engine, "second")
    done = await ended(engine, first, Completed(b"1"))
    bad = await ended(engine, second, failed("ValueError"))
    running = await enqueue(engine)
    await claim(engine, first)
    await enqueue(engine)
    shown = (await the_job(engine, done)).worker
    assert shown is not None
    assert (await the_job(engine, running)).worker == shown
    assert await found(engine, worker=shown) == [running, done]
    assert await found(engine, worker=shown, statuses=(Status.RUNNING,)) == [running]
    assert await found(engine, worker=(await the_job(engine, bad)).worker) == [bad]
    assert await found(engine, worker="nobody") == []


async def test_jobs_are_found_by_when_they_finished(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    waiting = await enqueue(engine, queue="later")
    early = await ended(engine, worker, Completed(b"1"), queue="default")
    clock.advance(60)
    middle = clock.utcnow()
    late = await ended(engine, worker, failed("ValueError"), queue="default")
    [job] = await claim(engine, worker, 1, ["later"])
    assert job.id == waiting
    clock.advance(60)
    await complete(engine, job)
    assert await found(engine, finished_after=middle) == [late, waiting]
    assert await found(engine, finished_before=middle) == [early]
    window = {"finished_after": middle, "finished_before": middle + timedelta(seconds=30)}
    assert await found(engine, **window) == [late]
    assert await found(engine, finished_after=clock.utcnow() + timedelta(seconds=1)) == []
    # It was created first and finished last.
    assert await found(engine, created_before=middle, finished_after=middle) == [waiting]
    await enqueue(engine)
    assert await found(engine, finished_before=clock.utcnow() + timedelta(days=1)) == [
        late, early, waiting,
    ]  # fmt: skip


async def test_brief_jobs_are_the_same_without_what_may_be_large(engine: Engine) -> None:
    worker = await a_worker(engine)
    fields = {"args": b'{"a":1}', "meta": b'{"m":2}', "lane": "l", "key": "k"}
    await ended(engine, worker, Retry(Failure(type="ValueError", message="x", traceback="t"), 0.0))
    [job] = await claim(engine, worker)
    await settle(engine, job, Completed(b'"result"'))
    await ended(engine, worker, failed("KeyError", "words"), **fields)
    await enqueue(engine, **(fields | {"key": None, "delay": 60.0}))
    whole = (await engine.list_jobs(JobFilter())).jobs
    brief = (await engine.list_jobs(JobFilter(), brief=True)).jobs
    assert len(whole) == len(brief) == 3
    for one, other in zip(brief, whole, strict=True):
        assert (one.args_json, one.result_json, one.meta_json, one.log) == (b"{}", None, None, b"")
        other.args_json, other.result_json, other.meta_json, other.log = b"{}", None, None, b""
        assert one == other
    assert brief[1].error == "words"


@pytest.mark.parametrize("indexed", [False, True])
async def test_the_work_of_a_page_is_bounded(engine: Engine, indexed: bool) -> None:
    """An engine may have an index on errors, and find more by as much work. None has one on the
    source.
    """
    worker = await a_worker(engine)
    rare = await ended(engine, worker, failed("Rare"), source="rare")
    for number in range(30):
        if number == 10:
            other = await ended(engine, worker, failed("Rare"), source="rare")
        await ended(engine, worker, failed("Usual"))
    by: dict[str, Any] = {"error_types": ("Rare",)} if indexed else {"source": "rare"}
    filter = JobFilter(statuses=(Status.FAILED,), **by)
    ids, steps, cursor = [], 0, None
    while steps == 0 or cursor is not None:
        page = await engine.list_jobs(filter, cursor=cursor, limit=10, look=10)
        if steps == 0 and not indexed:
            assert page.jobs == []
        ids += [job.id for job in page.jobs]
        cursor, steps = page.cursor, steps + 1
    assert ids == [other, rare]
    assert steps <= 5
    count = await engine.count_jobs(filter, look=10)
    if indexed:
        assert count.complete == (count.count == 2)
    else:
        assert steps >= 3
        assert (count.count, count.complete) == (0, False)
    count = await engine.count_jobs(filter, look=32)
    assert (count.count, count.complete) == (2, True)


async def test_counts_know_when_there_are_more(engine: Engine) -> None:
    await engine.insert([a_job(queue="a") for _ in range(6)])
    await engine.insert([a_job(queue="b", delay=60.0) for _ in range(5)])
    both = await engine.count_jobs(JobFilter(), look=11)
    assert (both.count, both.complete) == (11, True)
    some = await engine.count_jobs(JobFilter(), look=10)
    assert (some.count, some.complete) == (10, False)
    pending = JobFilter(statuses=(Status.PENDING,))
    assert (await engine.count_jobs(pending, look=6)).complete
    assert not (await engine.count_jobs(pending, look=5)).complete
    none = await engine.count_jobs(JobFilter(queues=("c",)))
    assert (none.count, none.complete) == (0, True)


@pytest.mark.parametrize(
    "statuses",
    [(), (Status.RUNNING, Status.FAILED), (Status.PENDING, Status.COMPLETED), (Status.FAILED,)],
)
async def test_bounded_pages_of_mixed_statuses_leave_nothing_out(
    engine: Engine, statuses: tuple[Status, ...]
) -> None:
    worker = await a_worker(engine)
    outcomes: list[Outcome | None] = [Completed(b"1"), failed("E"), None, failed("F")]
    for number in range(16):
        job_id = await enqueue(engine, task=f"t{number % 3}", queue=f"q{number}")
        outcome = outcomes[number % 4]
        if number % 5:
            [job] = await claim(engine, worker, 1, [f"q{number}"])
            assert job.id == job_id
            if outcome is not None:
                await settle(engine, job, outcome)
    assert len(await found(engine, statuses=statuses)) > 2
    assert len(await found(engine, statuses=statuses, tasks=("t1",))) >= 1
    await found(engine, statuses=statuses, error_types=("E",))


async def test_bounded_pages_of_children_and_keys(engine: Engine) -> None:
    parent = await enqueue(engine)
    ids = [await enqueue(engine, parent=parent, task=f"t{number % 2}") for number in range(7)]
    keyed = [await enqueue(engine, key="k", task=f"k{number}") for number in range(3)]
    assert await found(engine, parent=parent) == ids[::-1]
    assert await found(engine, parent=parent, tasks=("t1",)) == ids[1::2][::-1]
    assert await found(engine, key="k") == keyed[::-1]
    assert await found(engine, key="k", tasks=("k1",)) == [keyed[1]]


async def test_bounded_lists_and_counts_refuse_what_list_jobs_refuses(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await engine.list_jobs(JobFilter(), cursor="x", look=5, brief=True)
    page = await engine.list_jobs(JobFilter(), cursor=new_id(), look=5)
    assert (page.jobs, page.cursor) == ([], None)


async def test_a_job_tells_since_when_it_has_its_place_in_a_lane(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="l")
    second = await enqueue(engine, lane="l")
    plain = await enqueue(engine, queue="other")
    [job] = await claim(engine, worker, 1, ["default"])
    assert (await the_job(engine, first)).admitted_at is None
    assert (await the_job(engine, second)).admitted_at is None
    clock.advance(60)
    await complete(engine, job)
    [job] = await claim(engine, worker, 1, ["default"])
    assert job.id == second
    shown = await the_job(engine, second)
    assert shown.admitted_at is not None
    assert shown.started_at is not None
    assert shown.run_at + timedelta(seconds=59) < shown.admitted_at <= shown.started_at
    clock.advance(5)
    await complete(engine, job)
    assert (await the_job(engine, second)).admitted_at == shown.admitted_at
    assert (await the_job(engine, first)).admitted_at is None
    assert (await the_job(engine, plain)).admitted_at is None


async def test_an_older_place_in_a_lane_is_before_the_job_became_due_again(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="l")
    second = await enqueue(engine, lane="l")
    [job] = await claim(engine, worker)
    clock.advance(10)
    await complete(engine, job)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    clock.advance(10)
    await engine.rerun([second])
    shown = await the_job(engine, second)
    assert shown.admitted_at is None or shown.admitted_at < shown.run_at
