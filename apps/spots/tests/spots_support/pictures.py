"""Pictures of the page for the README: `python -m spots_support.pictures` (tests on the path)."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page
from playwright.async_api import async_playwright as playwright
from tests.support.browser import FLAGS, NONE_FOUND, find_browser

from headrace.server.listen import listening
from headrace_spots.mock_shop.plans import DEMO, ShopPlan
from headrace_spots.mock_shop.server import MockShop
from spots_support.places import Spots, open_spots

FOLDER = Path(__file__).parents[2] / "pictures"
# Name, width, height, scheme.
PICTURES = (("shops", 1280, 1420, "light"), ("shops-phone-dark", 390, 1600, "dark"))
# In English: not every machine that takes pictures has letters for Hangul.
ENGLISH = tuple(
    replace(plan, languages=("en",), name=name, address="12 Moon Street, Exampleton")
    for plan, name in zip(DEMO, ("Blue Door Coffee", "Moonlight", "Paper Boat"), strict=True)
)
QUESTION = "Is it easy to park there?"


@asynccontextmanager
async def open_city(folder: Path, plans: tuple[ShopPlan, ...] = DEMO) -> AsyncIterator[Spots]:
    """The shops of the demo, analysed; one more that failed."""
    os.environ["HEADRACE_ARTIFACTS"] = str(folder / "files")
    async with MockShop(plans) as shop, open_spots(f"sqlite:///{folder}/jobs.db") as spots:
        for plan in reversed(plans):
            await spots.post(shop.url(f"/{plan.slug}/"))
        await spots.work()
        yield spots


async def show(page: Page, url: str) -> None:
    """Open the page as it is read: with a shop, an aspect and an answer."""
    await page.goto(f"{url}/spots/")
    await page.wait_for_selector("#rating svg")
    await page.wait_for_selector("#aspects details")
    await page.click("#aspects details >> nth=0")
    await page.fill("#query", QUESTION)
    await page.click("#search button")
    await page.wait_for_selector("#hits li")


async def take(browser: Browser, url: str, picture: tuple[str, int, int, str], to: Path) -> Path:
    """Take one picture."""
    name, width, height, scheme = picture
    page = await browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
        locale="en-GB",
    )
    await show(page, url)
    await page.evaluate("scrollTo(0, 0)")
    taken = await page.screenshot(animations="disabled", caret="hide")
    await page.close()
    file = to / f"{name}.png"
    Image.open(BytesIO(taken)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
    return file


async def main(folder: Path = FOLDER) -> None:
    """Take all of them."""
    found = find_browser()
    if found is None:
        raise SystemExit(NONE_FOUND)
    with tempfile.TemporaryDirectory() as scene:
        async with (
            open_city(Path(scene), ENGLISH) as spots,
            listening(spots.app, host="127.0.0.1", port=0) as url,
            playwright() as driver,
        ):
            browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
            for picture in PICTURES:
                file = await take(browser, url, picture, folder)
                print(f"{file.name}: {file.stat().st_size / 1024:.0f} KB")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
