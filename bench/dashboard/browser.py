"""A real browser that looks at pages: how soon something is seen, and how smoothly it scrolls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, Response, sync_playwright
from tests.support.browser import FLAGS, NONE_FOUND, find_browser

SIZE = {"width": 1280, "height": 800}
STREAM = "/ui/stream"
SCROLL_SECONDS = 8.0
SCROLL_PIXELS = 400
PAINT = """() => new Promise(done => {
  const seen = list => list.getEntriesByName('first-contentful-paint')[0];
  const there = seen(performance);
  if (there) return done(there.startTime);
  const watch = new PerformanceObserver(list => seen(list) && done(seen(list).startTime));
  watch.observe({type: 'paint', buffered: true});
})"""
SCROLL = """([seconds, pixels]) => new Promise(done => {
  const frames = [];
  const shown = () => document.querySelectorAll('tr[data-row]').length;
  let rows = 0, began = 0, last = 0, way = 0;
  const step = now => {
    if (last) frames.push(now - last); else began = now;
    last = now;
    if (frames.length % 10 === 0) rows = Math.max(rows, shown());
    const before = scrollY;
    scrollBy({top: pixels, behavior: 'instant'});
    way += scrollY - before;
    if (now - began < 1000 * seconds) requestAnimationFrame(step); else done({frames, rows, way});
  };
  requestAnimationFrame(step);
})"""
# What a page says is unfinished: the figures of Now, or else the rows of a list of such jobs.
UNFINISHED = """() => {
  const number = link => parseInt(link.textContent.replace(/\\D/g, '') || '0');
  const figures = ['pending', 'running'].map(
    status => document.querySelector(`#live-figures a[href$="status=${status}"]`));
  if (figures.every(Boolean)) return number(figures[0]) + number(figures[1]);
  return document.querySelectorAll('#live-jobs tr[data-row]').length;
}"""


@dataclass
class Visit:
    """A page as somebody sees it who was never there. `bytes` are of the wire."""

    paint: float
    requests: int
    bytes: int
    status: int
    html: str


@dataclass
class Scrolled:
    """Milliseconds between frames, the most rows that were in the page, and pixels of way."""

    frames: list[float] = field(default_factory=list)
    rows: int = 0
    way: float = 0.0


@contextlib.contextmanager
def browsing() -> Iterator[Browser | None]:
    """A browser; None where there is none."""
    found = find_browser()
    if found is None:
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def new_page(browser: Browser) -> Iterator[Page]:
    """A page of somebody who was never there: nothing is cached."""
    context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
    try:
        yield context.new_page()
    finally:
        context.close()


def visit(browser: Browser, url: str) -> Visit:
    """Load a page, until it has painted and has all that it needs."""
    with new_page(browser) as page:
        answers: list[Response] = []
        # Playwright takes no built-in function.
        page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108
        document = page.goto(url)
        assert document is not None
        paint = page.evaluate(PAINT)
        # The stream is not a part of the page: it never ends.
        ended = [each for each in answers if STREAM not in each.url]
        sizes = [each.request.sizes() for each in ended]
        return Visit(
            paint,
            len(ended),
            sum(each["responseHeadersSize"] + each["responseBodySize"] for each in sizes),
            document.status,
            document.text(),
        )


def scroll(browser: Browser, url: str, seconds: float) -> Scrolled:
    """Scroll down a list, without a rest."""
    with new_page(browser) as page:
        page.goto(url)
        return Scrolled(**page.evaluate(SCROLL, [seconds, SCROLL_PIXELS]))


def unfinished(page: Page) -> int:
    """How many unfinished jobs an open page shows."""
    found: int = page.evaluate(UNFINISHED)
    return found


__all__ = ["NONE_FOUND", "browsing", "new_page", "scroll", "unfinished", "visit"]
