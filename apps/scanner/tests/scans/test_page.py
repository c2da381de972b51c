"""The page, in a real browser: it shows who runs, who waits and what changed, and complains about
nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import async_playwright as playwright
from playwright.async_api import expect
from scanner_support.pictures import open_page
from scanner_support.places import Scanning
from tests.support.browser import FLAGS, NONE_FOUND, find_browser
from tests.support.processes import until

import headrace
from headrace.server.listen import listening
from headrace_scanner.imports import ProductRow

# A machine that is busy with other tests is slow, not wrong.
expect.set_options(timeout=45_000)


@pytest.mark.timeout(300)
async def test_the_page_shows_platforms_and_changes(scanning: Scanning, tmp_path: Path) -> None:
    found = find_browser()
    if found is None:
        pytest.skip(NONE_FOUND)
    shops, complaints = scanning.shops, []
    row = ProductRow(platform="zigzag", product="1", name='Tea <b>"1"</b> & more', price=1.0)
    await scanning.scanner.add([row], "a <set>")
    await scanning.scan("zigzag", ["1"])
    shops.hold("zigzag")
    first = await scanning.scanner.scan("zigzag", set_name="a <set>")
    await scanning.scanner.scan("zigzag", set_name="a <set>", priority=3)
    worker = headrace.JobOrchestrator(scanning.app)
    await worker.start()
    await until(lambda: len(shops.visits) == 2, "the visit")
    async with listening(scanning.app, host="127.0.0.1", port=0) as url, playwright() as driver:
        browser = await driver.chromium.launch(executable_path=found, args=FLAGS)
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = await open_page(browser, url, width, scheme)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda said: note(complaints, said))
            assert await page.locator(".platform").count() == 8
            card = page.locator(".platform", has_text="Zigzag")
            # The page asks again and again: all of it may come a moment later.
            await expect(card).to_contain_text("scan · 0 of 1")
            await expect(card).to_contain_text("priority 3")
            await expect(page.locator("#changes")).to_contain_text('Tea <b>"1"</b> & more')
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, "nothing is cut off"
            rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa"]}}
            result = await Axe().run(page, options=rules)
            broken = [each["id"] for each in result.response["violations"]]
            assert broken == [], result.generate_report()
            if width == 390:
                shops.release()
                await scanning.finished(first.job_id)
                await page.locator(".platform.busy").first.wait_for(state="detached")
                await page.get_by_role("button", name="Scan all products of Zigzag").click()
                await page.locator("#note", has_text="was asked for").wait_for()
            await page.close()
        await browser.close()
    await worker.stop()
    assert complaints == []


def note(complaints: list[Any], said: Any) -> None:
    if said.type == "error":
        complaints.append(said.text)
