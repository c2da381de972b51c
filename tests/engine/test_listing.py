"""Pages of jobs: cursors of any kind, and filters that combine."""

from __future__ import annotations

from itertools import combinations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import InvalidInput
from headrace.model.ids import new_id
from headrace.model.job import JobFilter
from headrace.model.outcome import Cancelled, Completed, Failed, Outcome, Settlement, TimedOut
from headrace.model.status import Status
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, complete, enqueue


async def pages(engine: Engine, filter: JobFilter, limit: int) -> list[str]:
    """The ids of all pages, which have to be full except for the last."""
    seen: list[str] = []
    cursor = None
    while True:
        page = await engine.list_jobs(filter, cursor=cursor, limit=limit)
        seen += [job.id for job in page.jobs]
        if page.cursor is None:
            return seen
        assert len(page.jobs) == limit
        assert page.cursor == seen[-1]
        cursor = page.cursor


async def some_of_each(engine: Engine) -> dict[Status, set[str]]:
    """Two jobs in each status, with ids that are mixed."""
    worker = await a_worker(engine)
    new = [a_job(task=f"t{n % 2}", lane=f"l{n}") for n in range(14)]
    await engine.insert(new[:10])
    jobs = {job.id: job for job in await claim(engine, worker, 10)}
    outcomes: list[Outcome] = [Completed(b"1"), Failed(A_FAILURE), TimedOut(A_FAILURE), Cancelled()]
    await engine.exchange(
        [
            Settlement(job.id, jobs[job.id].token, outcomes[n % 5])
            for n, job in enumerate(new[:10])
            if n % 5 < 4
        ]
    )
    for job in new[10:12]:
        job.delay = 600
    await engine.insert(new[10:])
    order = [Status.COMPLETED, Status.FAILED, Status.TIMEOUT, Status.CANCELLED, Status.RUNNING]
    found = {status: {new[n].id, new[n + 5].id} for n, status in enumerate(order)}
    found[Status.SCHEDULED] = {job.id for job in new[10:12]}
    found[Status.PENDING] = {job.id for job in new[12:]}
    return found


async def test_every_mixture_of_statuses_is_found_whole(engine: Engine) -> None:
    jobs = await some_of_each(engine)
    for count in (1, 2, 3, 7):
        for statuses in combinations(Status, count):
            expected = sorted(set[str]().union(*(jobs[each] for each in statuses)), reverse=True)
            page = await engine.list_jobs(JobFilter(statuses=statuses))
            assert [job.id for job in page.jobs] == expected
            assert page.cursor is None


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_small_pages_of_mixed_statuses_leave_nothing_out(engine: Engine, limit: int) -> None:
    jobs = await some_of_each(engine)
    for statuses in (
        (),
        (Status.RUNNING, Status.FAILED),
        (Status.PENDING, Status.COMPLETED, Status.CANCELLED),
        (Status.FAILED, Status.TIMEOUT, Status.CANCELLED),
        (Status.SCHEDULED, Status.PENDING, Status.RUNNING),
    ):
        expected = set[str]().union(*(jobs[each] for each in statuses or Status))
        seen = await pages(engine, JobFilter(statuses=statuses), limit)
        assert seen == sorted(expected, reverse=True)
        odd = await pages(engine, JobFilter(statuses=statuses, tasks=("t1",)), limit)
        assert set(odd) < set(seen)


async def test_a_page_of_one(engine: Engine) -> None:
    first, second = await enqueue(engine), await enqueue(engine)
    page = await engine.list_jobs(JobFilter(), limit=1)
    assert ([job.id for job in page.jobs], page.cursor) == ([second], second)
    page = await engine.list_jobs(JobFilter(), cursor=second, limit=1)
    assert ([job.id for job in page.jobs], page.cursor) == ([first], None)
    page = await engine.list_jobs(JobFilter(), cursor=first, limit=1)
    assert (page.jobs, page.cursor) == ([], None)


@pytest.mark.parametrize(
    "statuses", [(), (Status.PENDING,), (Status.PENDING, Status.COMPLETED), (Status.FAILED,)]
)
async def test_a_cursor_need_not_be_a_job(engine: Engine, statuses: tuple[Status, ...]) -> None:
    below = await enqueue(engine)
    cursor = new_id()
    await enqueue(engine)
    page = await engine.list_jobs(JobFilter(statuses=statuses), cursor=cursor)
    assert [job.id for job in page.jobs] == ([] if statuses == (Status.FAILED,) else [below])
    page = await engine.list_jobs(
        JobFilter(statuses=statuses), cursor="00000000-0000-0000-0000-000000000000"
    )
    assert (page.jobs, page.cursor) == ([], None)


async def test_a_listing_goes_on_after_its_cursor_was_pruned(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    ids = [await enqueue(engine) for _ in range(5)]
    jobs = await claim(engine, worker, 5)
    await complete(engine, jobs[3])
    page = await engine.list_jobs(JobFilter(), limit=2)
    assert page.cursor == ids[3]
    clock.advance(10)
    assert await engine.prune(older_than=1) == 1
    page = await engine.list_jobs(JobFilter(), cursor=page.cursor, limit=2)
    assert [job.id for job in page.jobs] == [ids[2], ids[1]]


@pytest.mark.parametrize("cursor", ["", "x", "zzzz", "0198", "~", "a\x00b", "0198'--"])
async def test_a_cursor_that_cannot_be_an_id_is_refused(engine: Engine, cursor: str) -> None:
    await enqueue(engine)
    with pytest.raises(InvalidInput, match="cursor"):
        await engine.list_jobs(JobFilter(), cursor=cursor)


async def test_a_lane_is_found_in_its_queue(engine: Engine) -> None:
    worker = await a_worker(engine)
    ids = {
        (queue, lane): [await enqueue(engine, queue=queue, lane=lane) for _ in range(3)]
        for queue in ("a", "b")
        for lane in ("x", "y", None)
    }
    [job] = await claim(engine, worker, 1, ["a"])
    await complete(engine, job)

    async def found(**fields: object) -> list[str]:
        filter = JobFilter(**fields)  # type: ignore[arg-type]
        return sorted(await pages(engine, filter, 2))

    assert await found(queues=("a",), lane="x") == ids["a", "x"]
    assert await found(lane="x") == ids["a", "x"] + ids["b", "x"]
    assert await found(queues=("b", "c"), lane="y") == ids["b", "y"]
    assert await found(queues=("c",), lane="y") == []
    pending = await found(queues=("a",), lane="x", statuses=(Status.PENDING,))
    assert pending == [each for each in ids["a", "x"] if each != job.id]
    both = await found(queues=("a",), lane="x", statuses=(Status.PENDING, Status.COMPLETED))
    assert both == ids["a", "x"]


async def test_a_key_is_found_with_every_other_filter(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    one, two = [await enqueue(engine, task=task, key="k") for task in ("one", "two")]
    await enqueue(engine, task="one", key="other")
    [job] = await claim(engine, worker)
    await complete(engine, job)

    async def found(**fields: object) -> list[str]:
        page = await engine.list_jobs(JobFilter(key="k", **fields))  # type: ignore[arg-type]
        return [each.id for each in page.jobs]

    assert await found() == [two, one]
    assert await found(tasks=("one",)) == [one]
    assert await found(tasks=("one", "two"), statuses=(Status.PENDING,)) == [two]
    assert await found(statuses=(Status.COMPLETED, Status.FAILED)) == [one]
    assert await found(queues=("nowhere",)) == []
    assert await found(created_after=clock.utcnow()) == []
