"""Lists of thousands of rows: what somebody did in them stays, however far they were scrolled."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page

from tests.dashboard.conftest import Site, Windows, is_live
from tests.dashboard.test_live import shows
from tests.dashboard.trial import TRIAL

COUNT = "document.querySelectorAll('#rows tr[data-row]').length"
# No row twice, and none between two others left out.
SHOWN = "[...document.querySelectorAll('#rows tr[data-row]')].map((row) => row.id.slice(4))"

# The most rows of a list that were added between two frames.
MOST_ADDED = """
addEventListener("DOMContentLoaded", () => {
  let added = 0;
  window.most = 0;
  const frame = () => { added = 0; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes)
      for (const each of addedNodes) added += each.rows?.length ?? each.matches("[data-row]");
    window.most = Math.max(window.most, added);
  }).observe(document.getElementById("rows"), { childList: true, subtree: true });
});
"""


async def scroll_down(page: Page, row: int) -> int:
    """Scroll until a row is there. Return the most rows that the page had."""
    most = 0
    async with asyncio.timeout(30):
        while not await page.evaluate(f"!!document.getElementById('row-{row}')"):
            await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            most = max(most, await page.evaluate(COUNT))
    return most


async def test_three_thousand_rows_down_up_and_back(site: Site, windows: Windows) -> None:
    TRIAL.rows = [str(number) for number in range(3_000)]
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    await page.check("#row-3 input")
    await scroll_down(page, 150)
    await page.check("#row-150 input")
    assert await scroll_down(page, 2_999) <= 1_000
    assert await page.locator("#row-150").count() == 0, "it was not taken out"
    TRIAL.rows[:0] = [f"new-{number}" for number in range(37)]
    TRIAL.count = 1
    await shows(page, 1)
    assert await page.locator(".announce").inner_text() == "37 new — show"
    # What was selected is sent, and its number said, also while its row is taken out.
    await page.keyboard.press("r")
    assert "2 selected." in await page.inner_text("dialog .question")
    sent = page.locator("dialog input[name=id]")
    assert {await each.get_attribute("value") for each in await sent.all()} == {"150", "3"}
    await page.keyboard.press("Escape")
    await page.evaluate("document.querySelectorAll('#rows tbody')[1].scrollIntoView()")
    await page.wait_for_selector("#row-150", state="attached")
    assert await page.evaluate(COUNT) <= 1_000
    assert await page.is_checked("#row-150 input")
    await page.uncheck("#row-150 input")
    shown = await page.evaluate(SHOWN)
    assert len(shown) == len(set(shown))
    # The new ones: the list begins anew, and its selection stays.
    await page.click(".announce")
    await page.wait_for_selector("#row-new-0")
    assert await page.is_checked("#row-3 input")
    await scroll_down(page, 150)
    assert not await page.is_checked("#row-150 input")
    shown = await page.evaluate(SHOWN)
    assert shown == TRIAL.rows[: len(shown)]


async def test_rows_are_added_a_few_in_each_frame(site: Site, windows: Windows) -> None:
    """A hundred at once take longer than a frame, which people see while they scroll."""
    TRIAL.rows = [str(number) for number in range(1_000)]
    page: Page = await (await windows.context()).new_page()
    await page.add_init_script(MOST_ADDED)
    await page.goto(f"{site.base}/trial")
    await is_live(page)
    await scroll_down(page, 450)
    assert 0 < await page.evaluate("window.most") <= 25
    shown = await page.evaluate(SHOWN)
    assert len(shown) == len(set(shown))


async def test_back_leads_to_the_row_that_was_opened(site: Site, windows: Windows) -> None:
    TRIAL.rows = [str(number) for number in range(1_000)]
    page = await windows.open(f"{site.base}/trial?status=failed")
    await is_live(page)
    await scroll_down(page, 450)
    await page.check("#row-450 input")
    await page.evaluate("document.getElementById('row-450').scrollIntoView({ block: 'center' })")
    await page.click("#row-450 a")
    await page.wait_for_selector("#name")
    await page.go_back()
    await page.wait_for_selector("#row-450")
    await page.wait_for_function("""() => {
      const { top } = document.getElementById("row-450").getBoundingClientRect();
      return top > 0 && top < innerHeight;
    }""")
    assert await page.is_checked("#row-450 input")
    assert page.url.endswith("/trial?status=failed")
    # Forms come back to the same filter.
    await page.keyboard.press("r")
    await page.click("dialog button.primary")
    await page.wait_for_selector(".said")
    assert page.url.endswith("/trial?status=failed")
    assert await page.locator("input[data-select]:checked").count() == 0


async def test_all_rows_are_there_after_the_first_paint_and_without_scripts(
    site: Site, windows: Windows
) -> None:
    TRIAL.rows = [str(number) for number in range(100)]
    for scripts in (True, False):
        page = await windows.open(f"{site.base}/trial", java_script_enabled=scripts)
        last = page.locator("[data-list] [data-row]").last
        await last.wait_for(state="visible")
        assert await last.get_attribute("id") == "row-99"
