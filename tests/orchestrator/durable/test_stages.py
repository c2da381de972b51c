"""Stages by key, with retries and time limits of their own, and as decorated functions."""

from __future__ import annotations

import asyncio
import functools
import time

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.model.durable.entries import STAGE, stage_name, stage_view
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker

SOON = headrace.RetryPolicy(retries=3, base=0.01)


class Price(msgspec.Struct):
    amount: int


async def test_each_key_of_a_loop_is_kept_for_itself(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    ran: list[str] = []

    async def fetch(url: str) -> str:
        ran.append(url)
        if url == "/b" and ran.count(url) == 1:
            raise ConnectionError("away")
        return url.upper()

    @app.task
    async def crawl(ctx: headrace.Context) -> list[str]:
        return [await ctx.stage("page", fetch, url, key=url) for url in ("/a", "/b", "/c")]

    orchestrator = worker(app)
    job = await crawl.enqueue()
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).stage == "page[/b]"
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == ["/A", "/B", "/C"]
    assert ran == ["/a", "/b", "/b", "/c"]
    entries = await app.engine.entries(job.id, STAGE)
    views = [stage_view(entry) for entry in entries]
    assert [(view.name, view.attempt) for view in views] == [
        ("page[/a]", 1),
        ("page[/b]", 2),
        ("page[/c]", 2),
    ]


def test_names_of_stages_are_told_apart_from_keys() -> None:
    assert stage_name("page", 7) == "page[7]"
    assert stage_name("page [draft]…") == "page [draft]…"
    with pytest.raises(headrace.InvalidName, match="looks like a stage with a key"):
        stage_name("page[7]")
    with pytest.raises(headrace.InvalidName, match="cannot contain"):
        stage_name("page[7]", 8)
    with pytest.raises(headrace.InvalidName):
        stage_name("page", "a\nb")
    long = stage_name("page", "https://example.com/" + "x" * 5_000)
    assert long != stage_name("page", "https://example.com/" + "x" * 5_001)
    assert len(long.encode()) < 512


async def test_a_stage_is_tried_again_within_the_attempt(app: headrace.App, worker: Worker) -> None:
    ran: list[str] = []

    async def flaky() -> int:
        ran.append("flaky")
        if len(ran) < 3:
            raise ConnectionError("away")
        return 7

    @app.task(retries=0)
    async def scan(ctx: headrace.Context) -> list[int]:
        return [await ctx.stage("flaky", flaky, retry=SOON), ctx.token]

    job = await scan.enqueue()
    await worker(app).run_until_idle()
    assert (await app.get(job.id)).result == [7, 1]
    [entry] = await app.engine.entries(job.id, STAGE)
    assert stage_view(entry).tries == 3


@pytest.mark.parametrize("error", [headrace.ParserError, KeyError, headrace.Snooze])
async def test_some_errors_of_a_stage_are_not_tried_again(
    local: headrace.App, worker: Worker, error: type[Exception]
) -> None:
    ran: list[int] = []

    def broken() -> None:
        ran.append(1)
        raise headrace.Snooze(3600) if error is headrace.Snooze else error("no")

    @local.task(never_retry=[KeyError])
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("broken", broken, retries=5)

    job = await scan.enqueue()
    await worker(local).run_until_idle()
    assert ran == [1]
    expected = Status.SCHEDULED if error is headrace.Snooze else Status.FAILED
    assert (await local.get(job.id)).status is expected


async def test_a_failed_stage_may_be_caught_and_run_once_more(
    local: headrace.App, worker: Worker
) -> None:
    ran: list[int] = []

    async def step() -> int:
        ran.append(1)
        if len(ran) == 1:
            raise ValueError("the first is free")
        return len(ran)

    @local.task(retries=0)
    async def scan(ctx: headrace.Context) -> int:
        try:
            return await ctx.stage("step", step)
        except ValueError:
            return await ctx.stage("step", step)

    job = await scan.enqueue()
    await worker(local).run_until_idle()
    assert (await local.get(job.id)).result == 2


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_stage_has_a_time_limit_of_its_own(
    local: headrace.App, worker: Worker, kind: str
) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def blocking() -> None:
        time.sleep(0.3)

    @local.task(retries=0)
    async def scan(ctx: headrace.Context) -> None:
        await ctx.stage("slow", slow if kind == "async" else blocking, timeout=0.05)

    @local.task(retries=0)
    def threaded(ctx: headrace.Context) -> None:
        asyncio.run(ctx.stage("slow", slow if kind == "async" else blocking, timeout=0.05))

    jobs = [await scan.enqueue(), await threaded.enqueue()]
    await worker(local).run_until_idle()
    for job in jobs:
        over = await local.get(job.id)
        assert (over.status, over.error_type) == (Status.FAILED, "StageTimedOut")
        assert over.error == "stage 'slow' did not finish within 0.05 s"


async def test_odd_limits_are_refused(local: headrace.App, worker: Worker) -> None:
    async def step() -> None: ...

    @local.task(retries=0)
    async def both(ctx: headrace.Context) -> None:
        await ctx.stage("step", step, retries=1, retry=SOON)

    @local.task(retries=0)
    async def never(ctx: headrace.Context) -> None:
        await ctx.stage("step", step, timeout=0)

    jobs = [await both.enqueue(), await never.enqueue()]
    await worker(local).run_until_idle()
    errors = [(await local.get(job.id)).error or "" for job in jobs]
    assert errors[0] == "give retries or retry, not both"
    assert errors[1].startswith("timeout must be more than 0")


async def test_a_kept_value_that_no_longer_fits_is_a_clear_error(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    async def before() -> str:
        return "twelve"

    async def after() -> Price:
        return Price(12)

    @app.task
    async def scan(ctx: headrace.Context) -> int:
        step = before if ctx.attempt == 1 else functools.partial(after)
        value = await ctx.stage("price", step)
        if ctx.attempt == 1:
            raise OSError("again")
        assert isinstance(value, Price)
        return value.amount

    orchestrator = worker(app)
    job = await scan.enqueue()
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.attempt) == (Status.FAILED, 2)
    assert "the kept result of stage 'price' does not fit what its function returns" in (
        over.error or ""
    )
    # What the error says to do helps.
    await app.retry(job.id, from_stage="price")
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).status is Status.FAILED


ran_stages: list[str] = []


@headrace.stage("crawling", done="crawled")
async def crawl_shop(ctx: headrace.Context, url: str) -> list[str]:
    ran_stages.append(f"crawl {url}")
    return [f"{url}/1", f"{url}/2"]


@headrace.stage(key="{page}", retry=SOON)
def parse(ctx: headrace.Context, page: str, *, factor: int = 1) -> Price:
    ran_stages.append(f"parse {page}")
    return Price(len(page) * factor)


async def test_decorated_functions_are_stages_of_their_caller(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    ran_stages.clear()

    @app.task
    async def scan(ctx: headrace.Context, url: str) -> int:
        pages = await crawl_shop(ctx, url)
        prices = [await parse(ctx, page, factor=2) for page in pages]
        if ctx.attempt == 1:
            raise OSError("again")
        return sum(price.amount for price in prices)

    orchestrator = worker(app)
    job = await scan.enqueue("shop")
    await orchestrator.run_until_idle()
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(job.id)).result == 24
    assert ran_stages == ["crawl shop", "parse shop/1", "parse shop/2"]
    names = [entry.name for entry in await app.engine.entries(job.id, STAGE)]
    assert names == ["crawling", "parse[shop/1]", "parse[shop/2]"]


def test_a_decorated_stage_is_checked_when_it_is_made() -> None:
    with pytest.raises(headrace.InvalidSetting, match=r"reads \['nothing'\]"):

        @headrace.stage(key="{nothing}")
        async def odd(ctx: headrace.Context) -> None: ...
