"""What an open page shows while its server is killed and started again, and in a bulk action."""

from __future__ import annotations

import time
from collections.abc import Iterator

from playwright.sync_api import Page
from tests.support.servers import free_port

from bench.dashboard.browser import NONE_FOUND, browsing, new_page
from bench.dashboard.site import JOBS, at_most, build, serving
from bench.figures import Finding
from bench.scenarios.stage import Stage

TURNS = 5
MOST_NOTICED_SECONDS, MOST_RIGHT_SECONDS = 2.0, 3.0
BULK_JOBS = 50_000
MOST_ANSWER_SECONDS = 1.0
LEASE_SECONDS = "2"
PATIENCE_MS = 600_000.0
BREAK = "server killed and started again"


def breaks(stage: Stage) -> Iterator[Finding]:
    """How soon a page says that its server is gone, and how soon it is right after that."""
    noticed, right = list[float](), list[float]()
    with stage.fresh(), browsing() as browser:
        build(stage, finished=0, pending=100)
        port = free_port()
        if browser is not None:
            with new_page(browser) as page:
                for _ in range(stage.runs(TURNS)):
                    one, other = _broken(stage, page, port)
                    noticed.append(one)
                    right.append(other)
    note = f"longest of {len(noticed)}" if noticed else NONE_FOUND
    for case, found, bar in (
        (f"{BREAK}: the page says so after", noticed, MOST_NOTICED_SECONDS),
        (f"{BREAK}: the page is right after", right, MOST_RIGHT_SECONDS),
    ):
        yield at_most(stage, case, max(found, default=None), bar, "s", note=note)


def _broken(stage: Stage, page: Page, port: int) -> tuple[float, float]:
    with serving(stage, port=port) as site:
        if not page.url.startswith(site.url):
            page.goto(site.url + JOBS)
        _says(page, "Live")
        before = page.inner_text("#count")
    killed = time.monotonic()
    _says(page, "Reconnecting…")
    noticed = time.monotonic() - killed
    build(stage, finished=0, pending=1)
    with serving(stage, port=port) as site:
        back = time.monotonic()
        page.wait_for_function(
            "before => document.getElementById('count').textContent !== before", arg=before
        )
        right = time.monotonic() - back
    # The next turn begins with the page as it is: it is never loaded again.
    return noticed, right


def _says(page: Page, words: str) -> None:
    page.wait_for_function(
        "words => document.getElementById('stream-state').textContent === words", arg=words
    )


def bulk(stage: Stage) -> Iterator[Finding]:
    """Retry many jobs from the page: begun, stopped, continued, and its server killed meanwhile."""
    count = stage.jobs(BULK_JOBS)
    name = f"bulk action on {count:,} jobs"
    cases = (f"{name}, answered after", f"{name}, killed and taken up again, left undone")
    with stage.fresh(), browsing() as browser:
        if browser is None:
            yield at_most(stage, cases[0], None, MOST_ANSWER_SECONDS, "s", note=NONE_FOUND)
            yield at_most(stage, cases[1], None, 0, "jobs", note=NONE_FOUND)
            return
        build(stage, finished=count, fails=1)
        port = free_port()
        with new_page(browser) as page:
            page.set_default_timeout(PATIENCE_MS)
            with serving(stage, port=port, HEADRACE_LEASE_SECONDS=LEASE_SECONDS) as site:
                answered = _begin(page, site.url)
                stopped = _stop(page)
                _confirm(page, "Go on")
                page.wait_for_function(
                    "before => document.getElementById('changed').textContent !== before",
                    arg=page.inner_text("#changed"),
                )
                killed = _number(page)
            with serving(stage, port=port, HEADRACE_LEASE_SECONDS=LEASE_SECONDS):
                page.wait_for_selector("#live-bulk [data-status=completed]")
                changed = _number(page)
    yield at_most(stage, cases[0], answered, MOST_ANSWER_SECONDS, "s")
    note = (
        f"stopped by its button at {stopped:,}, server killed at {killed:,}, ended at {changed:,}"
    )
    found = at_most(stage, cases[1], abs(count - changed), 0, "jobs", note=note)
    found.met = bool(found.met) and stopped < count
    yield found


def _begin(page: Page, url: str) -> float:
    """Start it by the form of its preview; answers the seconds until its own page is there."""
    page.goto(f"{url}{JOBS}/bulk?action=retry&status=failed")
    if page.locator("#sure").count():
        page.fill("#sure", page.input_value("form input[name=matched]"))
    began = time.monotonic()
    page.click("form button[type=submit].primary")
    page.wait_for_selector("#changed")
    return time.monotonic() - began


def _stop(page: Page) -> int:
    """Stop it when it has changed some; answers how many it had changed when it stood still."""
    page.wait_for_function("() => !document.getElementById('changed').textContent.startsWith('0 ')")
    _confirm(page, "Stop")
    page.wait_for_selector("#live-bulk [data-status=paused]")
    return _number(page)


def _confirm(page: Page, text: str) -> None:
    page.click(f"summary:has-text('{text}')")
    page.click("dialog[open] button[type=submit]")
    page.wait_for_selector(".said")


def _number(page: Page) -> int:
    return int(page.inner_text("#changed").partition(" ")[0].replace(",", ""))
