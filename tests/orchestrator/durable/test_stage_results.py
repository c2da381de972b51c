"""Stages, progress and files of a job."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, ended, until


class Price(msgspec.Struct):
    amount: int
    currency: str = "KRW"


async def test_a_finished_stage_is_never_run_again(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    ran: list[str] = []

    async def crawl(url: str) -> list[str]:
        ran.append("crawl")
        return [url, url]

    def parse(pages: list[str], *, factor: int) -> Price:
        ran.append("parse")
        return Price(len(pages) * factor)

    async def store(price: Price) -> None:
        ran.append("store")
        if ran.count("store") == 1:
            raise ConnectionError("away")

    @app.task
    async def scan(ctx: headrace.Context, url: str) -> int:
        pages = await ctx.stage("crawling", crawl, url, done="crawled")
        price = await ctx.stage("parsing", parse, pages, factor=3)
        assert isinstance(price, Price)
        await ctx.stage("storing", store, price)
        return price.amount

    orchestrator = worker(app)
    job = await scan.enqueue("here")
    await orchestrator.run_until_idle()
    waiting = await app.get(job.id)
    assert (waiting.status, waiting.stage) == (Status.SCHEDULED, "storing")
    assert 60 < waiting.progress < 70
    clock.advance(5)
    await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, 6)
    assert ran == ["crawl", "parse", "store", "store"]
    names = [entry.name for entry in await app.engine.entries(job.id, "stage")]
    assert names == ["crawling", "parsing", "storing"]


async def test_a_killed_attempt_repeats_only_the_unfinished_stage(
    app: headrace.App, worker: Worker
) -> None:
    ran: list[str] = []
    started = asyncio.Event()

    async def one() -> int:
        ran.append("one")
        return 1

    async def two() -> int:
        ran.append("two")
        if len(ran) == 2:
            started.set()
            await asyncio.Event().wait()
        return 2

    @app.task
    async def both(ctx: headrace.Context) -> int:
        return await ctx.stage("one", one) + await ctx.stage("two", two)

    first = worker(app)
    await first.start()
    job = await both.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    await first.stop(grace=0)
    await worker(app).run_until_idle()
    assert (await app.get(job.id)).result == 3
    assert ran == ["one", "two", "two"]


async def test_the_stage_is_shown_while_it_runs_and_when_it_is_done(
    app: headrace.App, worker: Worker
) -> None:
    go_on = [asyncio.Event(), asyncio.Event()]

    async def step(number: int) -> None:
        await go_on[number].wait()

    after = asyncio.Event()

    @app.task
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("crawling", step, 0, done="crawled")
        await after.wait()
        await ctx.stage("parsing", step, 1, done="parsed")

    async def shows(stage: str) -> bool:
        return (await app.get(job.id)).stage == stage

    await worker(app).start()
    job = await scan.enqueue()
    await until(lambda: shows("crawling"))
    go_on[0].set()
    await until(lambda: shows("crawled"))
    assert (await app.get(job.id)).progress == 50
    after.set()
    await until(lambda: shows("parsing"))
    go_on[1].set()
    over = await ended(app, job)
    assert (over.stage, over.progress) == ("parsed", 100)


async def test_stages_work_in_plain_functions_too(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    ran: list[str] = []

    def fetch() -> int:
        ran.append("fetch")
        return 20

    async def double(value: int) -> int:
        ran.append("double")
        return value * 2

    @app.task()
    def threaded(ctx: headrace.Context) -> int:
        value = asyncio.run(ctx.stage("fetching", fetch))
        value = asyncio.run(ctx.stage("doubling", double, value))
        if ctx.attempt == 1:
            raise OSError("again")
        return value

    orchestrator = worker(app)
    job = await threaded.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 40
    assert ran == ["fetch", "double"]


async def test_progress_is_seen_while_the_job_runs(app: headrace.App, worker: Worker) -> None:
    release = asyncio.Event()

    @app.task
    async def telling(ctx: headrace.Context) -> None:
        for percent in range(0, 41):
            ctx.progress(percent, f"page {percent}")
        await release.wait()
        ctx.progress(80)
        raise headrace.ParserError("enough")

    orchestrator = worker(app)
    await orchestrator.start()
    job = await telling.enqueue()

    async def at_forty() -> bool:
        seen = await app.get(job.id)
        return (seen.progress, seen.message) == (40, "page 40")

    await until(at_forty)
    assert orchestrator.telemetry.notes == 1, "the latest counts, not every word"
    release.set()
    over = await ended(app, job)
    # What was said last is written before the outcome.
    assert (over.progress, over.message, over.status) == (80, "page 40", Status.FAILED)


async def test_progress_from_a_thread_and_from_many_jobs(app: headrace.App, worker: Worker) -> None:
    @app.task(retries=0)
    def telling(ctx: headrace.Context, number: int) -> None:
        ctx.progress(number)
        raise ValueError("so that progress stays")

    jobs = await app.enqueue_many(telling.job(number) for number in range(30))
    await worker(app).run_until_idle()
    assert [(await app.get(job.id)).progress for job in jobs] == list(range(30))


async def test_progress_outside_0_to_100_is_refused(local: headrace.App, worker: Worker) -> None:
    @local.task(retries=0)
    async def odd(ctx: headrace.Context) -> None:
        ctx.progress(101)

    job = await odd.enqueue()
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).error == "progress must be between 0 and 100, got 101"


async def test_a_stage_name_is_used_once(local: headrace.App, worker: Worker) -> None:
    async def step(value: int) -> int:
        return value

    @local.task(retries=0)
    async def twice(ctx: headrace.Context) -> None:
        await ctx.stage("step", step, 1)
        await ctx.stage("step", step, 2)

    job = await twice.enqueue()
    await worker(local).run_until_idle()
    assert "give each stage of a job a name of its own" in ((await local.get(job.id)).error or "")


async def test_a_stage_must_return_what_can_be_kept(local: headrace.App, worker: Worker) -> None:
    async def step() -> object:
        return object()

    @local.task
    async def odd(ctx: headrace.Context) -> None:
        await ctx.stage("step", step)

    job = await odd.enqueue()
    await worker(local).run_until_idle()
    over = await local.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 1)
    assert "stage 'step' returned what cannot be kept" in (over.error or "")


async def test_stages_in_parallel(app: headrace.App, worker: Worker, clock: Clock) -> None:
    ran: list[int] = []

    async def step(number: int) -> int:
        ran.append(number)
        return number

    @app.task
    async def fan(ctx: headrace.Context) -> int:
        values = await asyncio.gather(*(ctx.stage(f"step {n}", step, n) for n in range(10)))
        if ctx.attempt == 1:
            raise OSError("again")
        return sum(values)

    orchestrator = worker(app)
    job = await fan.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 45
    assert sorted(ran) == list(range(10))


async def test_a_large_stage_is_kept_as_an_artifact(
    here: str, worker: Worker, clock: Clock, tmp_path: Any
) -> None:
    async with headrace.App(
        here, clock=clock, payload_limit=1_000, artifacts=str(tmp_path / "files")
    ) as app:
        ran: list[int] = []

        async def crawl() -> str:
            ran.append(1)
            return "x" * 5_000

        @app.task
        async def scan(ctx: headrace.Context) -> int:
            page = await ctx.stage("crawling", crawl)
            if ctx.attempt == 1:
                raise OSError("again")
            return len(page)

        orchestrator = worker(app)
        job = await scan.enqueue()
        await orchestrator.run_until_idle()
        clock.advance(5)
        await orchestrator.run_until_idle()
        assert (await app.get(job.id)).result == 5_000
        assert ran == [1]


async def test_files_are_kept_with_the_job(app: headrace.App, worker: Worker, clock: Clock) -> None:
    @app.task
    async def keep(ctx: headrace.Context) -> list[str]:
        if ctx.attempt == 1:
            await ctx.artifacts.put("page.html", b"<p>", layer="bronze", media_type="text/html")
            raise OSError("again")
        assert await ctx.artifacts.get("page.html", layer="bronze") == b"<p>"
        await ctx.artifacts.put("result.json", b"{}")
        with pytest.raises(headrace.ArtifactNotFound, match="has kept no artifact"):
            await ctx.artifacts.get("nothing")
        return [file.path for file in await ctx.artifacts.list()]

    orchestrator = worker(app)
    job = await keep.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert over.result == [f"bronze/{job.id}/1/page.html", f"artifacts/{job.id}/2/result.json"]


async def test_the_context_tells_about_the_attempt(
    local: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    @local.task(queue="scans", lane="shop:{shop}", retries=2)
    async def about(ctx: headrace.Context, shop: str) -> dict[str, Any]:
        ctx.log.info("hello from %s", shop)
        names = ("job_id", "task", "queue", "attempt", "max_attempts", "token", "key", "lane")
        return {name: getattr(ctx, name) for name in names} | {"cancelled": ctx.cancelled}

    job = await about.options(key="only-one").enqueue("a")
    other = await about.enqueue("b")
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).result == {
        "job_id": job.id,
        "task": "about",
        "queue": "scans",
        "attempt": 1,
        "max_attempts": 3,
        "token": 1,
        "key": "only-one",
        "lane": "shop:a",
        "cancelled": False,
    }
    assert (await local.get(other.id)).result["key"] == other.id
    [line] = [record for record in caplog.records if record.getMessage() == "hello from a"]
    assert line.__dict__["job_id"] == job.id
