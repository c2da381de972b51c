"""Pages while nobody sees them, while the engine is away, and while the server is dead."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page

import headrace
from tests.dashboard.conftest import MakeSite, Site, Windows, is_live, says
from tests.dashboard.tabs import Tab, open_tabs
from tests.dashboard.trial import TRIAL
from tests.server.conftest import address_of, make_app
from tests.support.browser import NONE_FOUND, find_browser
from tests.support.processes import Processes, until
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    free_port,
    postgres_binaries,
    redis_binaries,
)


def streams() -> int:
    """How many streams this process holds."""
    return sum(each.get_name() == "headrace dashboard stream" for each in asyncio.all_tasks())


async def shows(tab: Tab, count: int) -> None:
    """Wait until a tab shows a number."""
    text = "document.getElementById('count')?.textContent"

    async def there() -> bool:
        return bool(await tab.evaluate(text) == str(count))

    await until(there, f"the number {count}")


async def hidden(tab: Tab) -> bool:
    return bool(await tab.evaluate("document.visibilityState") == "hidden")


async def test_a_tab_behind_another_holds_no_stream(site: Site, tmp_path: Path) -> None:
    found = find_browser()
    if found is None:
        pytest.skip(NONE_FOUND)
    async with open_tabs(found, tmp_path / "browser") as tabs:
        tab = await tabs.open(f"{site.base}/trial")
        await shows(tab, 0)
        await until(lambda: streams() == 1, "its stream")
        other = await tabs.open("about:blank")
        await until(lambda: hidden(tab), "the first tab to be behind the other")
        await until(lambda: streams() == 0, "the end of the stream of a tab that nobody sees")
        looks, TRIAL.count = TRIAL.looks, 5
        # A page of the same server in front: what is behind it stays closed.
        await other.evaluate(f"location.href = '{site.base}/trial'")
        await shows(other, 5)
        await until(lambda: TRIAL.looks > looks + 2, "some looks")
        assert streams() == 1
        assert await tab.evaluate("document.getElementById('count').textContent") == "0"
        await tab.to_front()
        await shows(tab, 5)
        await until(lambda: streams() == 1, "the stream of the tab in front alone")


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of this test's own."""
    made: Server
    if request.param == "postgres":
        made = PostgresServer(postgres_binaries()["postgres"], durable=True, name="away")
    else:
        made = RedisServer(redis_binaries()["redis"], fsync="always", name="away")
    made.start()
    yield made
    made.destroy()


async def has_job(page: Page, job: headrace.Job) -> None:
    """Wait until a page shows a job."""
    await page.wait_for_selector(f"#job-{job.id}", timeout=60_000)


async def test_an_engine_that_is_stopped_and_started(
    server: Server, make_site: MakeSite, windows: Windows, tmp_path: Path
) -> None:
    windows.expected = "503"
    async with make_app(server.url, tmp_path) as app:
        site = await make_site(app)
        first = await app.enqueue("add", {"a": 1, "b": 2})
        page = await windows.open(f"{site.base}/jobs")
        other = await windows.open(f"{site.base}/workers")
        await has_job(page, first)
        await is_live(page)
        await page.evaluate("window.stays = true")
        await asyncio.to_thread(server.kill)
        await page.wait_for_selector("#live-banner .problem", timeout=60_000)
        assert "What is shown is from before" in await page.inner_text("#live-banner")
        # What was seen stays, and a page that is opened now says the same in words.
        assert await page.locator(f"#job-{first.id}").count() == 1
        answer = await other.goto(f"{site.base}/jobs?status=pending", timeout=60_000)
        assert answer is not None
        assert answer.status == 503
        await other.wait_for_selector("[data-problem='503']")
        for each in (page, other):
            text = await each.content()
            assert "Traceback" not in text
            assert 'File "' not in text
        await asyncio.to_thread(server.start)

        async def enqueued() -> headrace.Job | None:
            try:
                return await app.enqueue("add", {"a": 2, "b": 2}, key="second")
            except headrace.EngineError:
                return None

        second = await until(enqueued, "the engine", limit=60)
        assert second is not None
        await has_job(page, second)
        await page.wait_for_selector("#live-banner:not(:has(.problem))", state="attached")
        assert await page.evaluate("window.stays"), "it was loaded again"
        await has_job(other, second)


async def test_a_server_that_is_killed_and_started(windows: Windows, tmp_path: Path) -> None:
    windows.expected = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET"
    port = str(free_port())
    store = f"sqlite:///{tmp_path}/jobs.db"
    with Processes(tmp_path) as processes:

        async def start() -> str:
            return await address_of(
                processes.headrace(
                    *("server", "--app", "tests.crash.program", "--port", port, "--json"),
                    HEADRACE_URL=store,
                )
            )

        url = await start()
        page = await windows.open(f"{url}/ui/jobs")
        await is_live(page)
        await page.evaluate("window.stays = true")
        processes.started[-1].kill()
        await says(page, "Reconnecting…")
        async with make_app(store, tmp_path) as app:
            job = await app.enqueue("add", {"a": 1, "b": 2})
        await start()
        await has_job(page, job)
        await is_live(page)
        assert await page.evaluate("window.stays"), "it was loaded again"
        await page.close()
