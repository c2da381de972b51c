"""What stands before a first paint: the page itself, and nothing else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, Route

from headrace.server.dashboard import assets, content_first, words
from headrace.server.dashboard.responses import POLICY
from tests.dashboard.conftest import Site, Windows, is_live
from tests.dashboard.test_live import LATELY
from tests.dashboard.test_session import client
from tests.dashboard.trial import TRIAL
from tests.support.verbs import a_job

PAINTED = "() => performance.getEntriesByName('first-contentful-paint').length"
STYLED = "getComputedStyle(document.querySelector('.top')).display"
STICKY = "getComputedStyle(document.querySelector('.top')).position"
ROWS = "[...document.querySelectorAll('#jobs tbody tr')].map((row) => row.id)"
PLACES = """[...document.querySelectorAll('#jobs tbody tr')].slice(0, 20).map(
  (row) => row.getBoundingClientRect().bottom)"""
# Sizes and weights of what is written, by family.
FONTS = """() => {
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let each; (each = texts.nextNode()); ) {
    if (!each.data.trim() || !each.parentElement.checkVisibility()) continue;
    const style = getComputedStyle(each.parentElement);
    found.add(`${style.fontFamily.split(",")[0]} ${style.fontSize} ${style.fontWeight}`);
  }
  return [...found].sort();
}"""
# Nothing is painted as far as the script knows, until a test says so.
NOT_PAINTED = """
window.PerformanceObserver = class {
  constructor(done) {
    window.painted = () => done();
    setTimeout(() => { window.early = "begun" in document.documentElement.dataset; });
  }
  observe() {}
};
"""


async def test_it_waits_for_nothing_but_the_page(site: Site, windows: Windows) -> None:
    """Rows, styles and times in words are there while the script is still on its way."""
    await site.app.engine.insert([a_job(task="add") for _ in range(150)])
    page: Page = await (await windows.context()).new_page()
    go = asyncio.Event()
    asked: list[str] = []

    async def hold(route: Route) -> None:
        await go.wait()
        await route.continue_()

    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await page.route("**/static/**", hold)
    await page.goto(f"{site.base}/jobs", wait_until="commit")
    await page.wait_for_function(PAINTED)
    await page.wait_for_selector("footer", state="attached")
    assert await page.locator("[data-row]").count() == 100
    assert LATELY.fullmatch(await page.inner_text("[data-row] time >> nth=0"))
    assert await page.evaluate(STYLED) == "flex"
    # A layer of its own is made after the first paint.
    assert await page.evaluate(STICKY) == "static"
    assert await page.inner_text("#stream-state") == ""
    go.set()
    await is_live(page)
    assert await page.evaluate(STICKY) == "sticky"
    # The next rows are asked for by scrolling only.
    assert len([path for path in asked if not path.endswith("/stream")]) <= 4, asked


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch, site: Site) -> Iterator[asyncio.Event]:
    """Pages come without their rest until this is set: at the latest before the site is closed."""
    go = asyncio.Event()

    async def sleep(_: float) -> None:
        await go.wait()

    monkeypatch.setattr(content_first, "asyncio", SimpleNamespace(sleep=sleep))
    yield go
    go.set()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 950), (390, 844)])
async def test_it_is_of_the_first_screen_only(
    site: Site, windows: Windows, rest: asyncio.Event, width: int, height: int
) -> None:
    """The rest of the page follows, and moves nothing. Only then the script is asked for."""
    await site.app.engine.insert([a_job(task="add") for _ in range(100)])
    page: Page = await (await windows.context(width=width, height=height)).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await page.goto(f"{site.base}/jobs", wait_until="commit")
    await page.wait_for_function(PAINTED)
    await page.wait_for_function(f"() => {ROWS}.length >= {content_first.FIRST_ROWS}")
    first, places = await page.evaluate(ROWS), await page.evaluate(PLACES)
    assert len(first) == content_first.FIRST_ROWS
    assert places[-1] >= height
    assert await page.locator("footer").count() == 0
    assert asked == ["/ui/jobs"]
    rest.set()
    await is_live(page)
    whole = await page.evaluate(ROWS)
    assert len(whole) == len(set(whole)) == 100
    assert whole[: len(first)] == first
    assert await page.evaluate(PLACES) == places


@pytest.mark.usefixtures("rest")
async def test_a_short_page_is_whole_before_its_script(site: Site, windows: Windows) -> None:
    page: Page = await (await windows.context()).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await page.goto(f"{site.base}/jobs", wait_until="commit")
    await page.wait_for_function(PAINTED)
    assert await page.locator("footer").inner_text() != ""
    assert asked == ["/ui/jobs"]


async def test_it_waits_for_few_fonts(site: Site, windows: Windows) -> None:
    """Each size and weight is a font of its own, which a browser asks another process for."""
    jobs = [a_job(task="add") for _ in range(3)]
    await site.app.engine.insert(jobs)
    for path in ("/", "/jobs", f"/jobs/{jobs[0].id}"):
        page = await windows.open(site.base + path)
        await is_live(page)
        fonts = await page.evaluate(FONTS)
        assert len([each for each in fonts if each.startswith("system-ui")]) <= 4, fonts
        assert len(fonts) <= 5, fonts


@pytest.mark.parametrize("rows", [0, 50])
async def test_the_rest_follows_the_first_screen(
    site: Site, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    TRIAL.rows = [str(number) for number in range(rows)]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(content_first, "asyncio", SimpleNamespace(sleep=sleep))
    shown = {"Sec-Fetch-Dest": "document"}
    async with client(site) as browser:
        whole = await browser.get("/ui/trial")
        assert slept == []
        parts = await browser.get("/ui/trial", headers=shown)
        assert slept == [content_first.REST_AFTER]
        assert _but_for_the_time(parts.text) == _but_for_the_time(whole.text)
        assert parts.headers["content-encoding"] == "gzip"
        # Parts of a page, and those who cannot read what is compressed, get it as it is.
        await browser.get("/ui/trial", headers={**shown, "Accept-Encoding": "identity"})
        await browser.get("/ui/trial", headers={"Headrace-Part": "live-trial"})
        assert len(slept) == 1


def _but_for_the_time(html: str) -> str:
    html = re.sub(r"(<time [^>]*data-relative[^>]*>)[^<]*", r"\1", html)
    return re.sub(r'data-now="[^"]*"', "", html)


async def test_the_script_begins_after_it(site: Site, windows: Windows) -> None:
    page: Page = await (await windows.context()).new_page()
    await page.add_init_script(NOT_PAINTED)
    await page.goto(f"{site.base}/trial")
    await page.wait_for_function("() => window.early !== undefined")
    assert await page.evaluate("window.early") is False
    await page.evaluate("window.painted()")
    await is_live(page)


async def test_words_are_counted_by_the_clock_of_the_server(site: Site, windows: Windows) -> None:
    TRIAL.rows = ["a"]
    page: Page = await (await windows.context()).new_page()
    await page.clock.set_fixed_time(datetime.now(UTC) + timedelta(hours=5))
    await page.goto(f"{site.base}/trial")
    await page.wait_for_selector("#row-a time[data-shown]")
    assert LATELY.fullmatch(await page.inner_text("#row-a time"))


async def test_on_a_phone_the_header_is_scrolled_away(site: Site, windows: Windows) -> None:
    TRIAL.rows = [str(number) for number in range(100)]
    page = await windows.open(f"{site.base}/trial", width=390, height=844)
    await is_live(page)
    await page.evaluate("document.getElementById('row-60').scrollIntoView()")
    await page.wait_for_function(
        "() => document.querySelector('.top').getBoundingClientRect().bottom < 0"
    )


def test_only_the_style_sheet_of_the_dashboard_is_allowed() -> None:
    digest = base64.b64encode(hashlib.sha256(str(assets.style_sheet()).encode()).digest()).decode()
    assert f"; style-src 'sha256-{digest}';" in POLICY
    assert "</" not in assets.style_sheet()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "just now"), (-4, "just now"), (5, "5 s ago"), (59.4, "59 s ago"), (60, "1 min ago"),
     (-3_700, "in 1 h"), (200_000, "2 d ago")],
)  # fmt: skip
def test_times_in_words(seconds: float, said: str) -> None:
    assert words.ago(seconds) == said
    now = datetime(2026, 3, 10, 3, 3, 1, tzinfo=UTC)
    moment = words.iso(now - timedelta(seconds=seconds))
    relative = f'<time datetime="{moment}" data-relative>{{}}</time>'
    assert words.counted(relative.format("then"), now) == relative.format(said)
    exact = f'<time datetime="{moment}">then</time>'
    assert words.counted(exact, now) == exact
