"""A running server, and a real browser that looks at it.

All tests here share one event loop, because they share one browser.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request
from playwright.async_api import async_playwright as playwright

import headrace
from headrace.server.listen import listening
from tests.dashboard.looks import axe, look_at_all_forms
from tests.dashboard.trial import TRIAL
from tests.server.conftest import make_app
from tests.support.browser import FLAGS, NONE_FOUND, find_headless

if TYPE_CHECKING:
    from tests.dashboard.tour import Tour

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(autouse=True)
def _trial() -> None:
    TRIAL.clear()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests. Each test has contexts of its own in it."""
    found = find_headless()
    if found is None:
        pytest.skip(NONE_FOUND)
    async with playwright() as driver:
        browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        await browser.close()


class Site:
    """A server over an App. `base` is where a browser finds the dashboard."""

    def __init__(self, app: headrace.App, url: str) -> None:
        self.app = app
        self.url = url
        self.base = f"{url}/ui"


MakeSite = Callable[..., Awaitable[Site]]


@pytest_asyncio.fixture(loop_scope="session")
async def make_site(tmp_path: Path) -> AsyncIterator[MakeSite]:
    """Start a server on SQLite. Its options are those of `headrace.server.create`."""
    async with AsyncExitStack() as stack:

        async def make(app: headrace.App | None = None, **options: Any) -> Site:
            if app is None:
                made = make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path)
                app = await stack.enter_async_context(made)
            url = await stack.enter_async_context(
                listening(app, host="127.0.0.1", port=0, **options)
            )
            return Site(app, url)

        yield make


@pytest_asyncio.fixture(loop_scope="session")
async def site(make_site: MakeSite) -> Site:
    """A server without keys."""
    return await make_site()


class Windows:
    """Opens pages, and notes everything that must not happen in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.contexts: list[BrowserContext] = []
        self.complaints: list[str] = []
        # Complaints that a test provokes, as a regular expression.
        self.expected = r"(?!)"

    async def context(self, *, width: int = 1280, height: int = 800, **options: Any) -> Any:
        """A browser that has seen nothing yet. `options` are Playwright's."""
        size = {"width": width, "height": height}
        context = await self._browser.new_context(
            viewport=size,  # type: ignore[arg-type]
            **options,
        )
        # A machine that is busy with other tests is slow, not wrong.
        context.set_default_timeout(45_000)
        context.on("console", self._said)
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        context.on("request", self._asked)
        self.contexts.append(context)
        return context

    async def open(self, url: str, **options: Any) -> Page:
        """A page in a context of its own."""
        page: Page = await (await self.context(**options)).new_page()
        await page.goto(url)
        return page

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"console: {message.text} {message.location}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).hostname not in {"127.0.0.1", "localhost"}:
            self.complaints.append(f"a request left this machine: {request.url}")

    def check(self) -> None:
        """Fail if there was something."""
        found = [each for each in self.complaints if not re.search(self.expected, each)]
        assert not found, "\n".join(found)


@pytest_asyncio.fixture(loop_scope="session")
async def windows(browser: Browser) -> AsyncIterator[Windows]:
    """Pages in a browser. Console errors, violations of the policy, requests to elsewhere fail."""
    made = Windows(browser)
    yield made
    for context in made.contexts:
        await context.close()
    made.check()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tour(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tour]:
    """A store with something for every page, and one window on it. Once for each module."""
    from tests.dashboard.tour import open_tour

    async with open_tour(browser, tmp_path_factory.mktemp("tour")) as opened:
        yield opened


async def is_live(page: Page) -> None:
    """Wait until a page follows its stream."""
    await says(page, "Live")


async def has_keys(page: Page) -> None:
    """Wait until a page listens to keys: those that are not live do not say it."""
    # Its scripts name the zone just before.
    await page.wait_for_selector("#zone-switch[aria-label]", state="attached")


async def says(page: Page, state: str) -> None:
    """Wait until a page says this of its stream."""
    await page.wait_for_function(
        "state => document.getElementById('stream-state')?.textContent === state", arg=state
    )


async def check_axe(page: Page) -> None:
    """Fail on everything that keeps people from using a page."""
    found = await axe(page)
    assert not found, "\n".join(found)


async def check_width(page: Page) -> None:
    """Fail if a page is wider than its window."""
    wide = await page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    assert not wide, "the page is wider than its window"


async def check_looks(page: Page) -> None:
    """Check a page as it is now: wide and narrow, light and dark."""
    found = await look_at_all_forms(page, page.url)
    assert not found, "\n".join(found)
