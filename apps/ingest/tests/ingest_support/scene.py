"""The page as people see it: an App with a worker, its server, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect
from playwright.async_api import async_playwright as playwright
from tests.support.browser import FLAGS, NONE_FOUND, find_headless

import headrace
from headrace.bundles import Setup
from headrace.server.listen import listening
from headrace_ingest.bundle import bundle
from headrace_ingest.documents import Documents
from headrace_ingest.service import IngestService

# A machine that is busy with other tests is slow, not wrong.
expect.set_options(timeout=45_000)


@dataclass(frozen=True)
class Scene:
    """An App that is served, and its documents."""

    app: headrace.App
    setup: Setup
    documents: Documents
    address: str


@asynccontextmanager
async def a_scene(folder: Path, **settings: Any) -> AsyncIterator[Scene]:
    """An App on SQLite with a worker and a server. Names are masked only where that is asked for:
    it takes a process with a dictionary.
    """
    app = headrace.App(f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files"))
    setup = app.load_bundle(bundle, **{"mask_names": False, **settings})
    async with app:
        service = IngestService(setup)
        worker = headrace.JobOrchestrator(app, name="steady")
        await worker.start()
        try:
            async with listening(app, host="127.0.0.1", port=0) as url:
                yield Scene(app, setup, Documents(service), f"{url}/ingest/")
        finally:
            await worker.stop()


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    """The machine's own Chromium."""
    found = find_headless()
    if found is None:
        raise RuntimeError(NONE_FOUND)
    async with playwright() as driver:
        browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


async def a_page(
    browser: Browser, address: str, *, width: int = 1280, height: int = 800, scheme: str = "light"
) -> Page:
    """Open the page and wait until it says what there is."""
    page = await browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    await page.goto(address)
    await expect(page.locator("#about")).not_to_have_text("Loading …")
    return page
