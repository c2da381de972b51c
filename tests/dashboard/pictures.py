"""Pictures of the dashboard for the documentation: `python -m tests.dashboard.pictures`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.async_api import Browser, Page
from playwright.async_api import async_playwright as playwright

from headrace import App
from headrace.server.dashboard.page import navigation
from headrace.server.listen import listening
from tests.dashboard.conftest import Site, has_keys, is_live
from tests.dashboard.shop import Shop, StillClock, fill, make_shop, still
from tests.support.browser import FLAGS, NONE_FOUND, find_browser

FOLDER = Path(__file__).parents[2] / "docs" / "dashboard"
ZONE = "Europe/Berlin"
# Taken in a scene of their own.
OF_ITS_OWN = ("alerts",)


class Picture(NamedTuple):
    """A file, and what is in it."""

    name: str
    path: str
    width: int = 1280
    height: int = 800
    scheme: str = "light"


def pictures(shop: Shop) -> list[Picture]:
    """Every page of the navigation, what incidents need besides, and some as phones show them."""
    found = [Picture(each.title.lower(), each.path) for each in navigation() if each.path != "/"]
    job, down = f"/jobs/{shop.job}", "task=send_receipt&error_type=ConnectionError"
    found += [
        Picture("run", f"/runs/{shop.run}"),
        Picture("queue", "/queues/mail"),
        Picture("schedule", "/schedules/nightly-report"),
        Picture("bulk-preview", f"/jobs/bulk?action=retry&status=failed&{down}"),
    ]
    for name, path in (("now", "/"), ("job", job)):
        found.append(Picture(name, path, height=1200))
        found.append(Picture(f"{name}-dark", path, height=1200, scheme="dark"))
        found.append(Picture(f"{name}-phone", path, width=390, height=844))
    return found


@asynccontextmanager
async def open_shop(
    folder: Path, more: Callable[[App], Awaitable[None]] | None = None
) -> AsyncIterator[tuple[Shop, Site]]:
    """The scene, `more` that is added to it, and a server that shows it."""
    clock = StillClock()
    with still(clock):
        async with make_shop(folder, clock) as app:
            shop = await fill(app, clock)
            if more is not None:
                await more(app)
            async with listening(app, host="127.0.0.1", port=0) as url:
                yield shop, Site(app, url)


async def sign_in(page: Page, site: Site, shop: Shop) -> None:
    """Go in by the form, as everybody does."""
    await page.goto(f"{site.base}/")
    await page.fill("#key", shop.key)
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#health")


async def settled(page: Page) -> None:
    """Wait until a page shows what it is going to show."""
    if await page.query_selector("body[data-view]"):
        await is_live(page)
    else:
        await has_keys(page)
    await page.evaluate("document.fonts.ready")


async def take(browser: Browser, site: Site, shop: Shop, wanted: Picture, folder: Path) -> Path:
    """Take one picture."""
    page = await browser.new_page(
        viewport={"width": wanted.width, "height": wanted.height},
        color_scheme=wanted.scheme,  # type: ignore[arg-type]
        timezone_id=ZONE,
        locale="en-GB",
        reduced_motion="reduce",
    )
    await page.clock.set_fixed_time(shop.app.clock.utcnow())
    await sign_in(page, site, shop)
    await page.goto(site.base + wanted.path)
    await settled(page)
    file = folder / f"{wanted.name}.png"
    taken = await page.screenshot(animations="disabled", caret="hide")
    await page.close()
    # Text on plain ground: 256 colours are enough, and a third of the size.
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
        async with open_shop(Path(scene)) as (shop, site), playwright() as driver:
            browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
            for wanted in pictures(shop):
                if wanted.name not in OF_ITS_OWN:
                    await _told(take(browser, site, shop, wanted, folder))
            await browser.close()
    await take_alerts(folder)


async def take_alerts(folder: Path = FOLDER) -> None:
    """Take the one of alerts: a server with rules is a worker too, which others should not show."""
    with tempfile.TemporaryDirectory() as scene:
        async with open_shop(Path(scene), alerting) as (shop, site), playwright() as driver:
            browser = await driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
            for wanted in pictures(shop):
                if wanted.name in OF_ITS_OWN:
                    await _told(take(browser, site, shop, wanted, folder))
            await browser.close()


async def alerting(app: App) -> None:
    """Rules of which some fire. Nobody listens where their receivers are said to be."""
    await app.put_destination("ops", "slack", {"url": "http://127.0.0.1:9/services/x"})
    mail = {"host": "127.0.0.1", "port": 9, "sender": "headrace@example.com"}
    await app.put_destination("night", "email", {**mail, "to": ["oncall@example.com"]})
    await app.put_alert_rule(
        "mail-is-late", "queue_age", ["ops", "night"], above="1m", repeat="4h", severity="critical"
    )
    await app.put_alert_rule("worker-lost", "worker_lost", "ops", severity="critical")
    await app.put_alert_rule("lane-stuck", "lane_stuck", "ops", for_="1h")
    await app.put_alert_rule("letters", "dead_letters", "ops", above=10_000, severity="info")
    await app.silence_alert("worker-lost", duration=7_200, reason="it is being moved", by="ada")
    await app.alert_loop().evaluator.round()


async def _told(taking: Awaitable[Path]) -> None:
    file = await taking
    print(f"{file.name}: {file.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    asyncio.run(main())
