"""Every page: accessible, narrow, light and dark; words instead of errors."""

from __future__ import annotations

from headrace.server.dashboard.page import all_pages
from tests.dashboard.conftest import Site, Windows, check_axe, is_live
from tests.dashboard.looks import look_at_all_forms

# What pages need that show nothing without.
QUERIES = {
    "/errors/group": "?task=send&fingerprint=0123456789abcdef",
    "/jobs/bulk": "?action=retry&status=failed",
}
PLAIN = [each.path + QUERIES.get(each.path, "") for each in all_pages() if "{" not in each.path]


async def test_every_page_of_an_empty_store_in_every_form(site: Site, windows: Windows) -> None:
    page, faults = await windows.open(site.base + "/help"), []
    for path in PLAIN:
        await page.goto(site.base + path)
        assert await page.locator("[data-problem]").count() == 0, path
        if await page.query_selector("body[data-view]"):
            await is_live(page)
        faults += await look_at_all_forms(page, path)
    assert not faults, "\n".join(faults)


async def test_help_is_a_dialog_that_gives_the_focus_back(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/workers")
    await is_live(page)
    await page.locator("#help-link").focus()
    await page.keyboard.press("?")
    await page.wait_for_selector("dialog[open] #help")
    await check_axe(page)
    await page.keyboard.press("Escape")
    await page.wait_for_selector("dialog:not([open])", state="attached")
    assert await page.evaluate("document.activeElement.id") == "help-link"


async def test_labels_in_a_dialog_are_those_of_its_fields(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.url}/")
    assert page.url == f"{site.base}/"
    await page.goto(f"{site.base}/keys")
    await is_live(page)
    await page.click("summary:has-text('New key')")
    await page.click("dialog label:has-text('Name')")
    await page.keyboard.type("ops")
    assert await page.input_value("dialog input[name=name]") == "ops"
    await check_axe(page)
