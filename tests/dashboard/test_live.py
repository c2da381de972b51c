"""Open pages: what a person does in them stays, and they are right again after every break."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page

from headrace.errors import EngineUnavailable
from headrace.server.dashboard.live import views
from headrace.server.listen import listening
from tests.dashboard.conftest import MakeSite, Site, Windows, check_axe, has_keys, is_live, says
from tests.dashboard.test_stream import looking
from tests.dashboard.trial import TRIAL
from tests.server.conftest import a_key, make_app
from tests.support.processes import until
from tests.support.servers import free_port

LATELY = re.compile(r"just now|\d+ (s|min) ago")


async def shows(page: Page, count: int) -> None:
    """Wait until a page shows a number."""
    await page.wait_for_function(
        "count => document.getElementById('count')?.textContent === String(count)", arg=count
    )


async def test_a_hundred_updates_leave_everything_where_it_is(
    site: Site, windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "PACE", 0.02)
    TRIAL.rows = [str(number) for number in range(60)]
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    await page.click("#summary")
    await page.fill("#area", "some text of mine")
    await page.evaluate("document.getElementById('box').scrollTop = 120")
    await page.fill("#typed", "hello world")
    await page.evaluate("""() => {
      const typed = document.getElementById("typed");
      typed.setSelectionRange(2, 7);
      document.documentElement.scrollTop = 200;
      const named = [...document.querySelectorAll("#live-trial [id]")];
      window.before = named.map((each) => [each.id, each]);
      window.shift = 0;
      new PerformanceObserver((list) => {
        for (const each of list.getEntries()) window.shift += each.value;
      }).observe({ type: "layout-shift" });
    }""")
    for number in range(1, 101):
        TRIAL.count = number
        await shows(page, number)
    told = await page.evaluate("""() => {
      const typed = document.getElementById("typed");
      return {
        focus: document.activeElement.id,
        value: typed.value,
        selection: [typed.selectionStart, typed.selectionEnd],
        area: document.getElementById("area").value,
        open: document.getElementById("more").open,
        box: document.getElementById("box").scrollTop,
        page: document.documentElement.scrollTop,
        same: window.before.every(([id, each]) => document.getElementById(id) === each),
        shift: window.shift,
      };
    }""")
    assert told.pop("shift") < 0.01
    assert told == {
        "focus": "typed",
        "value": "hello world",
        "selection": [2, 7],
        "area": "some text of mine",
        "open": True,
        "box": 120,
        "page": 200,
        "same": True,
    }


async def test_a_hidden_tab_holds_no_stream(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    await until(looking, "a look")
    hide = """hidden => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    await page.evaluate(hide, True)
    await until(lambda: not looking(), "the end of the stream of a hidden tab")
    TRIAL.count = 5
    await page.evaluate(hide, False)
    await shows(page, 5)


async def test_p_pauses_and_goes_on(site: Site, windows: Windows) -> None:
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    await page.keyboard.press("p")
    await says(page, "Paused")
    await until(lambda: not looking(), "the end of the stream of a paused page")
    TRIAL.count = 6
    await page.keyboard.press("p")
    await shows(page, 6)


async def test_a_server_that_comes_back_is_found(windows: Windows, tmp_path: Path) -> None:
    windows.expected = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|Failed to load"
    async with make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path) as app:
        # One that nobody is given for a connection while the server is away.
        port = free_port()
        async with listening(app, host="127.0.0.1", port=port) as url:
            page = await windows.open(f"{url}/ui/trial")
            await is_live(page)
        await says(page, "Reconnecting…")
        await page.evaluate("window.stays = true")
        TRIAL.count = 9
        async with listening(app, host="127.0.0.1", port=port):
            await is_live(page)
            await shows(page, 9)
            assert await page.evaluate("window.stays"), "it was loaded again"
            # Its forms have the token of the new server.
            await page.click("details.confirm summary")
            await page.click("dialog button.primary")
            await page.wait_for_selector(".said")
            await page.close()


async def test_an_engine_that_is_away(site: Site, windows: Windows) -> None:
    windows.expected = "503"
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    TRIAL.error = EngineUnavailable("the database does not answer")
    await page.wait_for_selector("#live-banner .problem")
    await check_axe(page)
    TRIAL.error, TRIAL.count = None, 3
    await shows(page, 3)
    assert await page.locator("#live-banner .problem").count() == 0
    # A page that could not be shown at all comes by itself.
    TRIAL.error = EngineUnavailable("the database does not answer")
    await page.goto(f"{site.base}/trial")
    await page.wait_for_selector("[data-problem='503']")
    TRIAL.error, TRIAL.count = None, 4
    await shows(page, 4)


async def test_new_rows_are_announced_to_somebody_who_is_in_the_list(
    site: Site, windows: Windows
) -> None:
    TRIAL.rows = [str(number) for number in range(20)]
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    TRIAL.rows.insert(0, "new-1")
    await page.wait_for_selector("#row-new-1")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    focused = "document.activeElement.id"
    assert await page.evaluate(focused) == "row-0"
    TRIAL.rows.insert(0, "new-2")
    TRIAL.rows.insert(0, "new-3")
    TRIAL.count = 1
    await shows(page, 1)
    assert await page.locator(".announce").inner_text() == "2 new — show"
    assert await page.locator("#row-new-2").count() == 0
    # What is there is updated where it is.
    assert "1" in await page.locator("#row-0 td").inner_text()
    assert await page.evaluate(focused) == "row-0"
    await check_axe(page)
    await page.click(".announce")
    await page.wait_for_selector("#row-new-3")
    assert await page.locator(".announce").count() == 0


async def test_a_long_list_is_loaded_as_it_is_scrolled(site: Site, windows: Windows) -> None:
    TRIAL.rows = [str(number) for number in range(1_500)]
    page = await windows.open(f"{site.base}/trial")
    await is_live(page)
    count = "document.querySelectorAll('#rows tr[data-row]').length"
    last = "!!document.getElementById('row-1499')"
    most = 0
    while not await page.evaluate(last):
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        most = max(most, await page.evaluate(count))
    assert most <= 1_000
    TRIAL.count = 2
    await shows(page, 2)
    assert await page.evaluate(last), "an update took away what was loaded"
    await page.evaluate("document.querySelectorAll('#rows tbody')[1].scrollIntoView()")
    await page.wait_for_selector("#row-150", state="attached")
    assert await page.evaluate(count) <= 1_000


async def test_keys(make_site: MakeSite, windows: Windows) -> None:
    site = await make_site()
    key = await a_key(site.app, "write")
    page = await windows.open(f"{site.base}/trial")
    await page.fill("#key", key)
    await page.keyboard.press("Enter")
    await is_live(page)
    assert key not in await page.content()
    await page.keyboard.press("t")
    theme = "document.documentElement.dataset.theme"
    assert await page.evaluate(theme) == "dark"
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    assert await page.locator("input[data-select]:checked").count() == 1
    # It is asked first; Escape leaves everything as it is, and the focus goes back.
    await page.keyboard.press("r")
    await page.wait_for_selector("dialog[open]")
    await check_axe(page)
    await page.keyboard.press("Escape")
    await page.wait_for_selector("dialog:not([open])", state="attached")
    await page.wait_for_function("() => document.activeElement.tagName === 'SUMMARY'")
    assert TRIAL.done == []
    await page.keyboard.press("r")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said")
    assert len(TRIAL.done) == 1
    assert await page.evaluate(theme) == "dark", "the theme was forgotten"
    await is_live(page)
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#name")
    await has_keys(page)
    await page.keyboard.type("gw")
    await page.wait_for_selector("#live-workers")
    await page.click("text=Sign out")
    await page.wait_for_selector("#key")
    await check_axe(page)


async def test_times_are_in_the_zone_that_is_named(site: Site, windows: Windows) -> None:
    page = await windows.open(
        f"{site.base}/trial", timezone_id="America/New_York", reduced_motion="reduce"
    )
    await is_live(page)
    time = page.locator("#row-a time")
    assert LATELY.fullmatch(await time.inner_text())
    assert await page.inner_text("#zone-name") == "Times are in America/New York"
    await time.hover()
    title = await time.get_attribute("title")
    assert title is not None
    assert title.endswith((" EST", " EDT"))
    await page.evaluate("window.stays = true")
    await page.click("#zone-switch")
    assert await page.inner_text("#zone-name") == "Times are in UTC"
    await time.hover()
    utc = await time.get_attribute("title")
    assert utc is not None
    assert utc.endswith(" UTC")
    # An update does not take it away while somebody points at it.
    TRIAL.count = 1
    await shows(page, 1)
    assert await time.get_attribute("title") == utc
    # In the row that has the focus the time is exact, also for those without a mouse.
    await page.keyboard.press("j")
    await page.wait_for_function(
        "text => document.querySelector('#row-a time').textContent === text", arg=utc
    )
    # An update does not turn it back.
    TRIAL.count = 2
    await shows(page, 2)
    assert await time.inner_text() == utc
    assert await page.evaluate("window.stays"), "it was loaded again"
    await page.reload()
    await has_keys(page)
    assert await page.inner_text("#zone-name") == "Times are in UTC"


async def test_pages_work_without_scripts(site: Site, windows: Windows) -> None:
    TRIAL.rows = [str(number) for number in range(150)]
    page = await windows.open(f"{site.base}/trial", java_script_enabled=False)
    # Nobody counts on, so the exact time stands beside.
    exact = "getComputedStyle(document.querySelector('#row-0 time'), '::after').content"
    assert LATELY.fullmatch(await page.inner_text("#row-0 time"))
    assert (await page.evaluate(exact)).endswith('Z)"')
    assert not await page.locator("#theme-switch").is_visible()
    await page.click("details.confirm summary")
    await page.click("details.confirm button.primary")
    await page.wait_for_selector(".said")
    assert len(TRIAL.done) == 1
    # A page comes in two parts: without the second one the last "More" is another.
    await page.wait_for_load_state("load")
    await page.click("text=More >> nth=-1")
    await page.wait_for_selector("#row-149")
