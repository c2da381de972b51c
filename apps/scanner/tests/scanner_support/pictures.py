"""Pictures of the page for the README. From the root of the repository:

PYTHONPATH=.:apps/scanner/tests .venv/bin/python -m scanner_support.pictures
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page
from playwright.async_api import async_playwright as playwright
from tests.support.browser import FLAGS, NONE_FOUND, find_browser
from tests.support.processes import until

import headrace
from headrace.server.listen import listening
from headrace_scanner import demo
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.platforms import NAMES
from scanner_support.places import Place, Scanning, open_scanner

FOLDER = Path(__file__).parents[2] / "pictures"
# Name, width, scheme.
PICTURES = (("page", 1280, "light"), ("page-phone-dark", 390, "dark"))
BROWSERS = ("oliveyoung", "ably", "kurly")


@asynccontextmanager
async def a_demo(folder: Path, shops: MockShops) -> AsyncIterator[Scanning]:
    """The demo, with what browsers do left waiting, and all shops held in the middle of it."""
    place = Place(
        "sqlite",
        f"sqlite:///{folder}/jobs.db",
        {"HEADRACE_SCANNER_SHOPS": shops.url, "HEADRACE_ARTIFACTS": str(folder / "files")},
    )
    os.environ |= place.environment
    async with open_scanner(place, shops) as scanning:
        await scanning.scanner.add(demo.demo_products(shops), demo.SET)
        queues = [name for name in NAMES if name not in BROWSERS]
        for name in ("hwahae", "zigzag", "musinsa", "default"):
            await scanning.scanner.scan(name, set_name=demo.SET)
        await headrace.JobOrchestrator(scanning.app, queues=queues).run_until_idle()
        worker = headrace.JobOrchestrator(scanning.app)
        for name in ("hwahae", "musinsa", "kurly", "ably"):
            await scanning.scanner.scan(name, set_name=demo.SET)
        await scanning.scanner.scan("musinsa", set_name=demo.SET)
        await scanning.scanner.scan("kurly", set_name=demo.SET, priority=5)
        seen = len(shops.visits)
        await worker.start()
        await until(lambda: len(shops.visits) > seen + 8, "visits", 100.0)
        shops.hold(*NAMES)
        await until(lambda: _held(shops) >= 4, "held visits", 200.0)
        try:
            yield scanning
        finally:
            shops.release()
            await worker.stop()


def _held(shops: MockShops) -> int:
    return sum(each.ended is None for each in shops.visits)


async def open_page(browser: Browser, url: str, width: int, scheme: str) -> Page:
    """Open the page and wait until all of it is there."""
    page = await browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    await page.goto(f"{url}/scanner/")
    await page.wait_for_selector("#platforms .platform.busy")
    await page.wait_for_selector("#changes li")
    await page.wait_for_selector("#scans li")
    return page


async def main(folder: Path = FOLDER) -> None:
    """Take all of them."""
    found = find_browser()
    if found is None:
        raise SystemExit(NONE_FOUND)
    with tempfile.TemporaryDirectory() as scene:
        async with (
            MockShops(slow_seconds=0.05, drift=True) as shops,
            a_demo(Path(scene), shops) as scanning,
            listening(scanning.app, host="127.0.0.1", port=0) as url,
            playwright() as driver,
        ):
            browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
            for name, width, scheme in PICTURES:
                page = await open_page(browser, url, width, scheme)
                height = 1180 if width > 500 else 1500
                await page.set_viewport_size({"width": width, "height": height})
                taken = await page.screenshot(animations="disabled", caret="hide")
                await page.close()
                file = folder / f"{name}.png"
                # Text on plain ground: 256 colours are enough, and a third of the size.
                picture = Image.open(BytesIO(taken)).convert("RGB")
                picture.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
                print(f"{file.name}: {file.stat().st_size / 1024:.0f} KB")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
