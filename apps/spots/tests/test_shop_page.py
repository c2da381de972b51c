"""The page, in a real browser: it shows what was found, and complains about nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import async_playwright as playwright
from spots_support.pictures import open_city, show
from tests.support.browser import FLAGS, NONE_FOUND, find_headless

from headrace.server.listen import listening
from headrace_spots.mock_shop.plans import ShopPlan

PLANS = (
    ShopPlan(slug="one", name="One <3 & Co", pages=3, per_page=6, languages=("en", "ko")),
    ShopPlan(slug="two", name="둘째 가게", pages=2, per_page=4, form="microdata", charset="euc-kr"),
)


async def test_the_page_shows_shops_and_finds_reviews(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_headless()
    if found is None:
        pytest.skip(NONE_FOUND)
    monkeypatch.setenv("HEADRACE_ARTIFACTS", "")
    complaints: list[Any] = []
    async with (
        open_city(tmp_path, PLANS) as spots,
        listening(spots.app, host="127.0.0.1", port=0) as url,
        playwright() as driver,
    ):
        browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = await browser.new_page(
                viewport={"width": width, "height": 844},
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            page.on(
                "console",
                lambda said: complaints.append(said.text) if said.type == "error" else None,
            )
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await show(page, url)
            assert "One <3 & Co" in await page.inner_text("#shops")
            await page.click("text=둘째 가게")
            await page.locator("#detail-title", has_text="둘째 가게").wait_for()
            passed = await page.locator("#stages li.past").all_inner_texts()
            assert len(passed) == 8
            assert await page.locator("#hits mark").count() > 0
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, "nothing is cut off"
            rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa"]}}
            result = await Axe().run(page, options=rules)
            broken = [each["id"] for each in result.response["violations"]]
            assert broken == [], result.generate_report()
            await page.close()
        await browser.close()
    # A browser asks for an icon that nobody has.
    assert [each for each in complaints if "404" not in each] == []
