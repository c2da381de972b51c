"""Every page and every dialog: accessible, light and dark, wide and narrow, for all eyes."""

from __future__ import annotations

import re

import pytest

from headrace.server.dashboard.page import all_pages
from headrace.server.dashboard.responses import POLICY
from tests.dashboard.conftest import Windows
from tests.dashboard.looks import FEWER, VISION, contrast, look_at_all_forms
from tests.dashboard.pictures import settled
from tests.dashboard.tour import Tour

QUESTIONS = "details.confirm"


def kind_of(form: str) -> str:
    """What an action is, whatever it is about."""
    return re.sub(r"/[^/]*[0-9%][^/]*/", "/…/", form)


@pytest.mark.timeout(400)
async def test_every_page_in_every_form(tour: Tour) -> None:
    page, faults = tour.page, []
    assert set(tour.addresses) == {
        each.path for each in all_pages() if not each.path.startswith("/trial")
    }
    for address in (each for some in tour.addresses.values() for each in some):
        answer = await page.goto(tour.site.base + address)
        assert answer is not None
        assert answer.headers["content-security-policy"] == POLICY, address
        await settled(page)
        assert await page.locator("[data-problem]").count() == 0, address
        faults += await look_at_all_forms(page, address)
    assert not faults, "\n".join(faults)


@pytest.mark.timeout(400)
async def test_every_dialog_in_every_form(tour: Tour) -> None:
    page, faults, seen = tour.page, [], set[str]()
    for address in (each for some in tour.addresses.values() for each in some):
        await page.goto(tour.site.base + address)
        await settled(page)
        await page.evaluate(FEWER)
        questions = page.locator(QUESTIONS)
        for number in range(await questions.count()):
            question = questions.nth(number)
            asked = kind_of(await question.locator("form").get_attribute("action") or "")
            if asked in seen:
                continue
            seen.add(asked)
            await question.locator("summary").click()
            await page.wait_for_selector("dialog[open]")
            faults += await look_at_all_forms(page, f"{address}, {asked}", "dialog")
            await page.keyboard.press("Escape")
    assert len(seen) >= 20, sorted(seen)
    assert not faults, "\n".join(faults)


async def test_sign_in_and_refusals_in_every_form(tour: Tour, windows: Windows) -> None:
    windows.expected = "status of 40[14]"
    page = await windows.open(f"{tour.site.base}/jobs")
    faults = await look_at_all_forms(page, "sign in")
    await page.fill("#key", "hr_wrong")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".problem")
    faults += await look_at_all_forms(page, "a wrong key")
    await tour.page.goto(f"{tour.site.base}/jobs/01990000-0000-7000-8000-000000000000")
    faults += await look_at_all_forms(tour.page, "no such job")
    await tour.page.goto(f"{tour.site.base}/nothing")
    faults += await look_at_all_forms(tour.page, "no such page")
    assert not faults, "\n".join(faults)


def test_contrast_is_counted_as_it_is_defined() -> None:
    assert contrast((0, 0, 0), (255, 255, 255), "as they are") == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255), "as they are") == pytest.approx(
        4.48, abs=0.01
    )
    # Red on green is told apart by its light alone, and some see less of it.
    red, green = (255.0, 0.0, 0.0), (0.0, 255.0, 0.0)
    assert {name: round(contrast(red, green, name), 1) for name in VISION}["protanopia"] > 4
