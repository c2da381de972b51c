"""Children: made once, waited for without a slot, cancelled with their parents."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.orchestrator.worker_parts import WorkerRuntime
from tests.orchestrator.conftest import Worker, became, ended, until


class Page(msgspec.Struct):
    number: int
    words: int = 0


async def test_a_parent_gets_the_results_in_order(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def fetch(number: int) -> Page:
        return Page(number, words=number * 10)

    @app.task
    async def crawl(ctx: headrace.Context, count: int) -> list[object]:
        pages = await ctx.gather([fetch.job(number) for number in range(count)], group="pages")
        assert all(isinstance(page, Page) for page in pages)
        return [sum(page.words for page in pages), ctx.attempt, ctx.token]

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    job = await crawl.enqueue(count=20)
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, [1900, 1, 2])
    page = await app.list(JobFilter(parent=job.id, group="pages"))
    assert len(page.jobs) == 20
    ids = [child.id for child in page.jobs]
    assert ids == sorted(ids, reverse=True)
    assert [child.args["number"] for child in page.jobs] == list(range(19, -1, -1))


async def test_children_are_made_once_over_all_attempts(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    @app.task
    async def fetch(number: int) -> int:
        return number

    @app.task(retry=headrace.RetryPolicy(retries=3, base=1.0))
    async def crawl(ctx: headrace.Context) -> int:
        ids = await ctx.spawn([fetch.job(number) for number in range(5)])
        alone = await ctx.spawn(fetch.job(100))
        if ctx.attempt == 1:
            raise OSError("again")
        return sum(await ctx.gather([*ids, alone]))

    orchestrator = worker(app)
    job = await crawl.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(2)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 110
    assert len((await app.list(JobFilter(parent=job.id))).jobs) == 6


async def test_a_waiting_parent_shows_what_it_waits_for(app: headrace.App, worker: Worker) -> None:
    release = asyncio.Event()

    @app.task
    async def fetch(number: int) -> int:
        await release.wait()
        return number

    @app.task
    async def crawl(ctx: headrace.Context) -> int:
        return sum(await ctx.gather([fetch.job(number) for number in range(3)], group="pages"))

    orchestrator = worker(app)
    await orchestrator.start()
    job = await crawl.enqueue()
    waiting = await became(app, job, Status.SCHEDULED)
    assert waiting.awaits == (AwaitedChildren("pages"),)
    release.set()
    assert (await ended(app, job)).result == 3


async def test_a_failed_child_fails_its_parent_or_is_collected(
    app: headrace.App, worker: Worker
) -> None:
    @app.task(retries=0)
    async def fetch(number: int) -> int:
        if number == 1:
            raise ValueError("no such page")
        return number

    @app.task
    async def strict(ctx: headrace.Context) -> None:
        await ctx.gather([fetch.job(number) for number in range(3)])

    @app.task
    async def lenient(ctx: headrace.Context) -> list[object]:
        jobs = [fetch.job(number) for number in range(3)]
        results = await ctx.gather(jobs, on_failure="collect")
        [failed] = [each for each in results if isinstance(each, headrace.FailedChild)]
        return [failed.index, failed.status, failed.error_type, failed.error, results[0]]

    first, second = await strict.enqueue(), await lenient.enqueue()
    await worker(app).run_until_idle()
    over = await app.get(first.id)
    assert (over.status, over.error_type, over.attempt) == (Status.FAILED, "ChildFailed", 1)
    assert "1 of 3 children ended without a result" in (over.error or "")
    assert "no such page" in (over.error or "")
    assert (await app.get(second.id)).result == [1, "failed", "ValueError", "no such page", 0]


async def test_cancel_reaches_children_and_their_children(
    app: headrace.App, worker: Worker
) -> None:
    started = asyncio.Event()

    @app.task
    async def leaf() -> None:
        started.set()
        await asyncio.Event().wait()

    @app.task
    async def branch(ctx: headrace.Context) -> None:
        await ctx.gather([leaf.job() for _ in range(3)])

    @app.task
    async def root(ctx: headrace.Context) -> None:
        await ctx.gather([branch.job(), branch.options(delay=3600).job()])

    orchestrator = worker(app)
    await orchestrator.start()
    job = await root.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    await app.cancel(job.id)

    async def all_cancelled() -> bool:
        jobs = (await app.list()).jobs
        return len(jobs) == 6 and all(each.status is Status.CANCELLED for each in jobs)

    await until(all_cancelled)
    [early] = (await app.list(JobFilter(parent=job.id, statuses=(Status.CANCELLED,)), limit=1)).jobs
    assert early.error == f"its parent {job.id} was cancelled"


async def test_a_parent_that_cancels_itself_while_it_runs_reaches_its_children(
    app: headrace.App, worker: Worker
) -> None:
    ready = asyncio.Event()

    @app.task
    async def leaf() -> None: ...

    @app.task
    async def root(ctx: headrace.Context) -> None:
        ready.set()
        while not ctx.cancelled:  # noqa: ASYNC110 - what handlers look at
            await asyncio.sleep(0.01)
        await asyncio.shield(ctx.spawn([leaf.options(delay=3600).job() for _ in range(3)]))

    orchestrator = worker(app)
    await orchestrator.start()
    job = await root.enqueue()
    await asyncio.wait_for(ready.wait(), 20)
    await app.cancel(job.id)
    assert (await ended(app, job)).status is Status.CANCELLED

    async def none_left() -> bool:
        page = await app.list(JobFilter(parent=job.id, statuses=(Status.SCHEDULED,)))
        return not page.jobs

    await until(none_left)


async def test_a_cancel_that_comes_just_before_the_wait_reaches_the_children(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker hears of it too late: the engine turns the wait into the end."""
    monkeypatch.setattr(WorkerRuntime, "cancel", lambda self, job_id: None)

    @app.task
    async def leaf() -> None: ...

    @app.task
    async def root(ctx: headrace.Context) -> None:
        await app.engine.cancel([ctx.job_id])
        await ctx.gather([leaf.options(delay=3600).job() for _ in range(3)])

    orchestrator = worker(app)
    job = await root.enqueue()
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).status is Status.CANCELLED
    children = (await app.list(JobFilter(parent=job.id))).jobs
    assert [child.status for child in children] == [Status.CANCELLED] * 3


async def test_a_child_that_is_cancelled_by_hand_wakes_its_parent(
    app: headrace.App, worker: Worker
) -> None:
    @app.task
    async def leaf() -> None: ...

    @app.task
    async def root(ctx: headrace.Context) -> str:
        [child] = await ctx.gather([leaf.options(delay=3600).job()], on_failure="collect")
        assert child is not None
        return str(child.status)

    orchestrator = worker(app)
    job = await root.enqueue()
    await orchestrator.run_until_idle()
    [child] = (await app.list(JobFilter(parent=job.id))).jobs
    await app.cancel(child.id)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == "cancelled"


async def test_meta_is_inherited(local: headrace.App, worker: Worker) -> None:
    @local.task
    async def leaf() -> None: ...

    @local.task
    async def root(ctx: headrace.Context) -> None:
        await ctx.gather([leaf.job(), leaf.options(meta={"own": 1, "user": "Ben"}).job()])

    job = await root.options(meta={"user": "Ana", "trace": "00-1"}).enqueue()
    await worker(local).run_until_idle()
    second, first = (await local.list(JobFilter(parent=job.id))).jobs
    assert first.meta == {"user": "Ana", "trace": "00-1"}
    assert second.meta == {"user": "Ben", "trace": "00-1", "own": 1}


async def test_a_child_in_the_lane_that_its_parent_holds_is_refused(
    local: headrace.App, worker: Worker
) -> None:
    @local.task(lane="shop", retries=0)
    async def child() -> None: ...

    @local.task(lane="shop", retries=0)
    async def waiting(ctx: headrace.Context) -> None:
        await ctx.gather([child.job()])

    @local.task(lane="shop", retries=0)
    async def leaving(ctx: headrace.Context) -> None:
        await ctx.spawn(child.job())

    job, other = await waiting.enqueue(), await leaving.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.error_type) == (Status.FAILED, "InvalidInput")
    assert "this job keeps its place while it waits for them" in (over.error or "")
    assert (await local.get(other.id)).status is Status.COMPLETED
    [successor] = (await local.list(JobFilter(parent=other.id))).jobs
    assert successor.status is Status.COMPLETED


async def test_a_lane_that_yields_lets_children_pass(app: headrace.App, worker: Worker) -> None:
    lane = headrace.Lane("shop", on_retry="yield")

    @app.task(lane=lane)
    async def child(number: int) -> int:
        return number

    @app.task(lane=lane)
    async def parent(ctx: headrace.Context) -> int:
        return sum(await ctx.gather([child.job(number) for number in range(3)]))

    job = await parent.enqueue()
    await worker(app).run_until_idle()
    assert (await app.get(job.id)).result == 3


async def test_another_number_of_children_is_a_clear_error(
    local: headrace.App, worker: Worker, clock: Clock
) -> None:
    @local.task
    async def leaf() -> None: ...

    @local.task
    async def root(ctx: headrace.Context) -> None:
        await ctx.spawn([leaf.job() for _ in range(ctx.attempt)], group="leaves")
        raise OSError("again")

    orchestrator = worker(local)
    job = await root.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    over = await local.get(job.id)
    assert over.status is Status.FAILED
    assert "children 'leaves' were 1 at first and are 2 now" in (over.error or "")


@pytest.mark.parametrize("way", ["key", "thing", "mixed", "stranger"])
async def test_what_cannot_be_a_child(local: headrace.App, worker: Worker, way: str) -> None:
    @local.task
    async def leaf() -> None: ...

    stranger = await leaf.options(delay=3600).enqueue()

    @local.task(retries=0)
    async def root(ctx: headrace.Context) -> None:
        match way:
            case "key":
                await ctx.spawn(leaf.options(key="k").job())
            case "thing":
                await ctx.spawn([1])  # type: ignore[list-item]
            case "mixed":
                await ctx.gather([leaf.job(), stranger.id])  # type: ignore[arg-type]
            case "stranger":
                await ctx.gather([stranger.id])

    job = await root.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.error_type) == (Status.FAILED, "InvalidInput")
    expected = {
        "key": "has the key 'k'",
        "thing": "a child is made by task.job(…), got int",
        "mixed": "new jobs or ids",
        "stranger": "is not a child of this job",
    }
    assert expected[way] in (over.error or "")
    await local.cancel(stranger.id)


async def test_some_of_a_group_can_be_waited_for(app: headrace.App, worker: Worker) -> None:
    release = asyncio.Event()

    @app.task
    async def leaf(number: int) -> int:
        if number >= 2:
            await release.wait()
        return number

    @app.task
    async def root(ctx: headrace.Context) -> list[int]:
        ids = await ctx.spawn([leaf.job(number) for number in range(4)])
        first = await ctx.gather(ids[:2])
        release.set()
        return [*first, *await ctx.gather(ids)]

    orchestrator = worker(app)
    await orchestrator.start()
    job = await root.enqueue()
    assert (await ended(app, job)).result == [0, 1, 0, 1, 2, 3]


async def test_plain_functions_have_children_too(app: headrace.App, worker: Worker) -> None:
    @app.task
    def leaf(number: int) -> int:
        return number

    @app.task
    def root(ctx: headrace.Context) -> int:
        return sum(asyncio.run(ctx.gather([leaf.job(number) for number in range(5)])))

    job = await root.enqueue()
    await worker(app).run_until_idle()
    assert (await app.get(job.id)).result == 10


async def test_nothing_to_gather(local: headrace.App, worker: Worker) -> None:
    @local.task
    async def root(ctx: headrace.Context) -> list[object]:
        return [await ctx.gather([]), await ctx.spawn([]), ctx.token]

    job = await root.enqueue()
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).result == [[], [], 1]
