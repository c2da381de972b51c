"""A bad night, rehearsed: Now names each trouble, and all is mended from the pages alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page

import headrace
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.monitor.findings import lanes
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live
from tests.dashboard.scenes import failed_jobs, lost_worker, unreachable
from tests.support.processes import until
from tests.support.verbs import claim, the_job

LOST, MISSING, ELSEWHERE = 3_600, 900, 500
# From the first look at Now until all is well again, jobs that are run again included.
MOST_SECONDS = 180.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane counts as blocked at once."""
    monkeypatch.setattr(lanes, "LONG_SECONDS", 0.0)


@pytest_asyncio.fixture(loop_scope="session")
async def night(make_site: MakeSite, tmp_path: Path) -> AsyncIterator[Site]:
    """A server and a worker; what failed before would succeed now."""
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task(queue="mail")
    async def send() -> None: ...

    @app.task(queue="scans")
    async def read() -> None: ...

    @app.task(queue="news")
    async def post() -> None: ...

    @app.task(queue="books", lane="account:{account}")
    async def post_entry(account: int, stuck: bool = False) -> None:
        if stuck:
            await asyncio.Event().wait()

    async with app:
        engine = app.engine
        # While it was down: three kinds of failures in two tasks.
        await failed_jobs(engine, "send", [("KeyError", "'name'")] * MISSING)
        await failed_jobs(engine, "read", unreachable(ELSEWHERE), queue="scans")
        await failed_jobs(engine, "send", unreachable(LOST))
        # Somebody has paused a queue and gone home.
        await app.pause("news", reason="provider is down", by="ada")
        await app.enqueue("post")
        # A machine is gone, with a job in its hands.
        gone = await lost_worker(engine, "w3", lease=2.0)
        await app.enqueue("read")
        assert await claim(engine, gone, 1, ["scans"])
        # One job blocks its lane.
        await app.enqueue("post_entry", {"account": 7, "stuck": True})
        for _ in range(3):
            await app.enqueue("post_entry", {"account": 7})
        orchestrator = headrace.JobOrchestrator(app)
        await orchestrator.start()
        try:
            yield await make_site(app)
        finally:
            await orchestrator.stop(grace=1.0)


def card(kind: str) -> str:
    return f'article[id^="finding-{kind}"]'


async def follow(page: Page, site: Site, kind: str) -> None:
    """From Now to what a finding is about."""
    await page.goto(f"{site.base}/")
    await page.click(f'{card(kind)} >> text="Show"')
    await is_live(page)


async def confirm(page: Page, text: str) -> None:
    await page.click(f"summary:has-text('{text}')")
    await page.click("dialog[open] button[type=submit]")
    await page.wait_for_selector(".said")


# Longer than its own limit, so that the test itself says what took too long.
@pytest.mark.timeout(300)
async def test_a_bad_night_is_mended_from_the_pages(night: Site, windows: Windows) -> None:
    engine = night.app.engine
    [stuck] = await until(lambda: running(night, "books"), "the job that blocks its lane")
    began = time.monotonic()
    page = await windows.open(f"{night.base}/")
    # Thousands of jobs are run meanwhile, and groups are made of thousands.
    page.set_default_timeout(60_000)
    await is_live(page)
    for kind, words in {
        "queue.paused-news": "is paused by ada",
        "lane.blocked-books": f"is held by job {stuck.id}",
        "failures.spike-send": "most of them ConnectionError in task 'send'",
        "worker.lost-w3": "Worker 'w3' is lost",
    }.items():
        await page.wait_for_selector(card(kind))
        assert words in await page.inner_text(card(kind))
    assert "need you." in await page.inner_text("#health")

    await follow(page, night, "queue.paused-news")
    assert page.url == f"{night.base}/queues/news"
    await confirm(page, "Resume")

    await follow(page, night, "lane.blocked-books")
    assert page.url == f"{night.base}/jobs/{stuck.id}"
    await confirm(page, "Cancel")
    await until_status(night, stuck.id, Status.CANCELLED)

    await follow(page, night, "failures.spike-send")
    assert "task=send&error_type=ConnectionError" in page.url
    await retry_every_group(page, night)

    # What is lost is told of for a while, in words, and needs nobody.
    await page.goto(f"{night.base}/")
    await page.wait_for_function(
        "() => document.getElementById('health')?.textContent.startsWith('All is well.')"
    )
    took = time.monotonic() - began
    assert took < MOST_SECONDS, f"mended after {took:.0f} s"
    rest = await page.locator("article.finding").all_inner_texts()
    assert len(rest) == 1
    assert "it holds nothing any more" in rest[0]
    assert "Nothing is to be done" in rest[0]
    wanted = JobFilter(statuses=(Status.FAILED, Status.TIMEOUT))
    assert (await engine.count_jobs(wanted)).count == 0
    assert (await engine.count_jobs(JobFilter(tasks=("post", "post_entry")))).count == 5
    assert (await engine.count_jobs(JobFilter(statuses=(Status.CANCELLED,)))).count == 1


async def running(site: Site, queue: str) -> list[Job]:
    wanted = JobFilter(queues=(queue,), statuses=(Status.RUNNING,))
    return (await site.app.engine.list_jobs(wanted, limit=9)).jobs


async def until_status(site: Site, job_id: str, status: Status) -> None:
    async def has_it() -> bool:
        return (await the_job(site.app.engine, job_id)).status is status

    await until(has_it, f"job {job_id} to be {status.value}")


async def retry_every_group(page: Page, site: Site) -> None:
    """The largest first, each by its preview, until none is left."""
    for count in (LOST, MISSING, ELSEWHERE):
        await page.goto(f"{site.base}/errors")
        first = page.locator("#live-errors tbody tr").first
        await page.wait_for_function(
            "count => document.querySelector('#live-errors [data-label=Failures]')?.textContent"
            " === count",
            arg=f"{count:,}",
        )
        await first.locator("text=Retry this group").click()
        await page.wait_for_selector(f"text={count:,} jobs would be run again")
        await page.fill("#sure", str(count))
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#live-bulk [data-status=completed]")
        assert (await page.inner_text("#changed")).startswith(f"{count:,} of {count:,}")
    await page.goto(f"{site.base}/errors")
    await page.wait_for_selector("text=No job has failed.")
