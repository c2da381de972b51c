"""Every action, reached and done by keyboard alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Page, Response

from headrace.server.dashboard.action import DashboardAction, all_actions
from tests.dashboard.pictures import settled
from tests.dashboard.tour import Tour
from tests.support.processes import until

# What has to be typed, by the name of the field. Everything else may stay as it is.
TYPED = {
    "name": "by-keyboard",
    "expression": "30 2 * * *",
    "task": "tell_team",
    "arg-order": "1",
    "arg-to": "ada",
    "param.day": "2026-03-11",
    "starts": "10/m",
}
# A copy of this form in a dialog, or the form itself.
FORMS = """() => [...document.querySelectorAll("main form[method=post]")].map((form, number) => {
  form.number = number;
  return [form.getAttribute("action"), number];
})"""
FOCUS = """() => {
  const at = document.activeElement;
  const marked = (each) => {
    const style = each && getComputedStyle(each);
    return !!each && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  };
  return {
    form: at.closest("form")?.number ?? at.closest("details.confirm")?.querySelector("form").number ?? -1,
    summary: at.matches("details.confirm > summary"),
    asked: !!at.closest("dialog"),
    nowhere: at === document.body || at.id === "content",
    name: at.name ?? "",
    typed: at.value ?? "",
    submit: at.matches("[type=submit]:not([name])"),
    seen: marked(at) || marked(at.closest("[data-row]")),
    what: at.outerHTML.slice(0, 100),
  };
}"""  # noqa: E501
MOST_TABS = 900


def action_of(path: str) -> DashboardAction:
    """The action that a form is for."""
    for each in all_actions():
        pattern = re.sub(r"\\\{[^}]*path\\\}", ".+", re.escape(each.path))
        if re.fullmatch("/ui" + re.sub(r"\\\{[^}]*\\\}", "[^/]+", pattern), path):
            return each
    raise AssertionError(f"no action has the path {path}")


async def tab_to(page: Page, wanted: Any, what: str) -> dict[str, Any]:
    """Press Tab until the focus is where it is wanted, and see it all the way."""
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        at: dict[str, Any] = await page.evaluate(FOCUS)
        assert at["seen"] or at["nowhere"], f"{what}: nobody sees that {at['what']} has the focus"
        if wanted(at):
            return at
    raise AssertionError(f"{what}: the keyboard does not lead there")


async def to_content(page: Page) -> None:
    """Skip what is above, as the first link of each page offers."""
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Tab")
    while not await page.evaluate("document.activeElement.matches('.skip')"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")


async def check_dialog(page: Page, what: str) -> None:
    """The focus goes into the dialog, stays in it, and comes back."""
    await page.wait_for_selector("dialog[open]")
    for _ in range(12):
        at = await page.evaluate(FOCUS)
        assert at["asked"] or at["nowhere"], f"{what}: the focus left the dialog: {at['what']}"
        await page.keyboard.press("Tab")
    await page.keyboard.press("Escape")
    await page.wait_for_selector("dialog:not([open])", state="attached")
    assert (await page.evaluate(FOCUS))["summary"], f"{what}: the focus did not come back"


def _sent(answer: Response) -> bool:
    return answer.request.method == "POST"


async def do(page: Page, action: DashboardAction, number: int) -> None:
    """Do what a form is for."""
    what, mine = action.path, number
    asks = await page.evaluate(
        "number => [...document.querySelectorAll('form')]"
        ".some((form) => form.number === number && form.closest('details.confirm'))",
        number,
    )
    await to_content(page)
    if asks:
        await tab_to(page, lambda at: at["summary"] and at["form"] == mine, what)
        await page.keyboard.press("Enter")
        await check_dialog(page, what)
        await page.keyboard.press("Enter")
        await page.wait_for_selector("dialog[open]")

    def ours(at: dict[str, Any]) -> bool:
        return bool(at["asked"]) if asks else at["form"] == mine

    at = await page.evaluate(FOCUS)
    while not (ours(at) and at["submit"]):
        if ours(at) and at["name"] == "sure":
            asked = await page.inner_text("label[for=sure]")
            await page.keyboard.type(re.sub(r"\D", "", asked))
        elif ours(at) and at["name"] in TYPED and not at["typed"]:
            await page.keyboard.type(TYPED[at["name"]])
        at = await tab_to(page, ours, what)
    answers: list[Response] = []

    def note(answer: Response) -> None:
        answers.append(answer)

    page.on("response", note)
    await page.keyboard.press("Enter")
    await until(lambda: any(_sent(each) for each in answers), f"{what} to be sent")
    status = next(each.status for each in answers if _sent(each))
    page.remove_listener("response", note)
    assert status in (200, 303), f"{what}: {status} {await page.inner_text('main')}"
    await page.wait_for_selector(".said, #new-key")


@pytest.mark.timeout(400)
async def test_every_action_is_done_by_keyboard(tour: Tour) -> None:
    page, done = tour.page, set[str]()
    await page.set_viewport_size({"width": 1280, "height": 800})
    everything = {each.path for each in all_actions() if not each.path.startswith("/trial")}
    mine = tour.shop.key.split("_")[1]
    addresses = [each for some in tour.addresses.values() for each in some]
    # What is disabled in the first round is enabled in the second.
    for address in [*addresses, *addresses]:
        if done == everything:
            break
        for _ in range(8):
            await page.goto(tour.site.base + address)
            if await page.query_selector("[data-problem]"):
                break  # an action has removed it
            await settled(page)
            # Not the key that is signed in.
            forms = [
                (action_of(path), number)
                for path, number in await page.evaluate(FORMS)
                if mine not in path
            ]
            left = [each for each in forms if each[0].path not in done]
            if not left:
                break
            await do(page, *left[0])
            done.add(left[0][0].path)
    assert done == everything
