"""The page as people see it: an App with a worker, its server, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect
from playwright.async_api import async_playwright as playwright
from tests.support.browser import FLAGS, NONE_FOUND, find_headless

import headrace
from headrace.server.listen import listening
from speech_support.making import Made, made

# A machine that is busy with other tests is slow, not wrong.
expect.set_options(timeout=45_000)
# Sound without a click, and without a loudspeaker.
SOUND = ("--autoplay-policy=no-user-gesture-required", "--mute-audio")


@asynccontextmanager
async def a_scene(folder: Path, **settings: Any) -> AsyncIterator[tuple[Made, str]]:
    """An App on SQLite with a worker and a server; yields it and the address of the page."""
    store, tables = (f"sqlite:///{folder}/{name}.db" for name in ("jobs", "speech"))
    async with made(store, tables, str(folder / "files"), **settings) as opened:
        worker = headrace.JobOrchestrator(opened.app, name="steady")
        await worker.start()
        try:
            async with listening(opened.app, host="127.0.0.1", port=0) as url:
                yield opened, f"{url}/speech/"
        finally:
            await worker.stop()


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    """The machine's own Chromium."""
    found = find_headless()
    if found is None:
        raise RuntimeError(NONE_FOUND)
    async with playwright() as driver:
        browser = await driver.chromium.launch(executable_path=found, args=[*FLAGS, *SOUND])
        try:
            yield browser
        finally:
            await browser.close()


async def a_page(
    browser: Browser, address: str, *, width: int = 1280, height: int = 800, scheme: str = "light"
) -> Page:
    """Open the page and wait until the voices are there."""
    page = await browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    await page.goto(address)
    await page.wait_for_selector("#turns li")
    return page
