"""Now: one sentence of health, what is wrong with links and remedies, and figures."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import Page

import headrace
from headrace.clock import Clock
from headrace.monitor import snapshot
from headrace.monitor.findings import summary
from headrace.monitor.findings.lanes import LONG_SECONDS
from headrace.monitor.series.write import MinuteWriter
from headrace.server.dashboard.findings.cards import remedy_of
from headrace.telemetry import Telemetry
from tests.dashboard.conftest import MakeSite, Site, Windows, check_looks, is_live
from tests.dashboard.scenes import failed_jobs, unreachable
from tests.dashboard.test_frame import HOSTILE
from tests.dashboard.test_session import client, signed_in
from tests.monitor.test_findings import advance
from tests.server.conftest import a_key, make_app, run_jobs
from tests.support.verbs import LEASE, a_worker, claim, enqueue


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show what the test has done, not what the server saw when it began."""
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(summary, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(summary, "OPENED_SECONDS", 0.0)


@pytest_asyncio.fixture(loop_scope="session")
async def clocked(make_site: MakeSite, tmp_path: Path, clock: Clock) -> AsyncIterator[Site]:
    """A server whose time the test moves."""
    async with make_app(f"sqlite:///{tmp_path}/clocked.db", tmp_path, clock=clock) as app:
        yield await make_site(app)


async def shown(site: Site, path: str = "/") -> str:
    async with client(site) as browser:
        answer = await browser.get(f"/ui{path}")
        assert answer.status_code == 200, answer.text
        return answer.text


def health(html: str) -> str:
    found = re.search(r'<p id="health"[^>]*><b>([^<]*)</b>', html)
    assert found is not None
    return found[1]


def cards(html: str) -> list[str]:
    """The kinds and names of what is said to be wrong."""
    return re.findall(r'<article class="card finding" id="finding-([^"]*)"', html)


async def test_an_empty_system_says_what_to_do_first(site: Site) -> None:
    html = await shown(site)
    assert health(html) == "Nothing has run here yet."
    for line in ("headrace worker", "headrace enqueue", "headrace up"):
        assert line in html
    assert not cards(html)


async def test_nothing_alarming_when_all_is_well(site: Site) -> None:
    await site.app.enqueue("add", {"a": 1, "b": 2})
    await run_jobs(site.app)
    html = await shown(site)
    assert health(html) == "All is well."
    assert not cards(html)
    assert 'class="problem"' not in html
    assert "Errors of the last hour" not in html


async def behind(app: headrace.App, name: str, **report: Any) -> None:
    body = {"type": "queue", "adapter": "kafka", "healthy": True, **report}
    await app.engine.record_put("dispatcher", name, msgspec.json.encode(body))


async def test_each_thing_that_is_wrong_has_a_link_and_a_remedy(
    clocked: Site, clock: Clock
) -> None:
    app, engine = clocked.app, clocked.app.engine
    await app.put_schedule("nightly", "* * * * *", "broken")
    worker = await a_worker(engine, "w1", queues=("mail", "default", "lanes"))
    for _ in range(3):
        await enqueue(engine, queue="lanes", lane="user:7")
    [holder] = await claim(engine, worker, 1)
    await a_worker(engine, "w3")
    await advance(clock, engine, max(LONG_SECONDS, LEASE) + 1, worker)
    await failed_jobs(engine, "send", unreachable(40))
    await enqueue(engine, queue="mail")
    await app.pause("mail", reason="provider is down", by="ada")
    await enqueue(engine, queue="scans")
    await behind(app, "orders", lag=40_000)
    html = await shown(clocked)
    assert set(cards(html)) == {
        "queue.paused-mail",
        "queue.no-worker-scans",
        "worker.lost-w3",
        "lane.blocked-lanes/user%3A7",
        "failures.spike-send",
        "dispatcher.behind-orders",
        "schedule.missed-nightly",
    }
    # That the worker is lost, which holds nothing, is only told.
    assert health(html) == "6 things need you."
    for words in (
        "paused by ada",
        "no worker serves it",
        "Worker &#39;w3&#39; is lost",
        f"is held by job {holder.id}",
        "40 jobs failed in the last 5 minutes",
        "40,000 messages wait to become jobs",
        '<code tabindex="0">headrace queues resume mail</code>',
        f'<code tabindex="0">headrace jobs cancel {holder.id}</code>',
    ):
        assert words in html, words
    links = re.findall(r'<a class="button" href="([^"]*)">Show</a>', html)
    assert f"/ui/jobs/{holder.id}" in links
    assert {
        "/ui/queues/mail",
        "/ui/queues/scans",
        "/ui/jobs?worker=w3",
        "/ui/schedules/nightly",
    } < set(links)
    assert "/ui/errors?task=send&amp;error_type=ConnectionError" in links
    assert len(links) == 7
    async with client(clocked) as browser:
        for link in links:
            assert (await browser.get(unescape(link))).status_code == 200, link
    for action in ("/ui/queues/mail/resume", "/ui/lanes/cancel-holder"):
        assert f'action="{action}"' in html
    assert "action=retry&amp;status=failed&amp;status=timeout&amp;task=send" in html


async def test_what_is_only_told_does_not_need_anybody(clocked: Site, clock: Clock) -> None:
    engine = clocked.app.engine
    worker = await a_worker(engine, "w1")
    await a_worker(engine, "w3")
    await advance(clock, engine, LEASE + 1, worker)
    html = await shown(clocked)
    assert health(html).startswith("All is well.")
    assert "Worker &#39;w3&#39; is lost" in html


async def some_minutes(app: headrace.App, clock: Clock) -> None:
    """What a worker has written down of its last minutes."""
    telemetry = Telemetry()
    writer = MinuteWriter(engine=app.engine, telemetry=telemetry, worker=lambda: "w1", clock=clock)
    counters = telemetry.of("add", "default")
    for number in (0, 1_234, 2):
        counters.completed += number
        counters.count("failed")
        counters.wait.observe(0.02)
        await writer.write(clock.now())
        clock.advance(60)
    clock.advance(20)


async def test_the_last_hour_as_charts_and_numbers(clocked: Site, clock: Clock) -> None:
    await some_minutes(clocked.app, clock)
    html = await shown(clocked)
    assert 'aria-label="Attempts by minute in the last hour"' in html
    assert 'aria-label="Seconds that jobs waited, by minute"' in html
    assert '<td data-label="completed" class="number">1,234</td>' in html
    assert '<td data-label="failed" class="number">1</td>' in html


async def test_a_key_for_one_queue_sees_no_trace_of_others(make_site: MakeSite) -> None:
    site = await make_site()
    engine = site.app.engine
    await a_key(site.app)
    await failed_jobs(engine, "hidden.task", unreachable(30), queue="hidden")
    await failed_jobs(engine, "mail.task", [("KeyError", "'x'")], queue="mail")
    await enqueue(engine, queue="hidden-too")
    await site.app.pause("hidden-too", reason="a hidden reason")
    key = await a_key(site.app, "admin", queues=["mail"])
    async with signed_in(site, key) as browser:
        for path in ("/", "/errors", "/errors?within=today"):
            html = (await browser.get(f"/ui{path}")).text
            assert "hidden" not in re.sub(r'type="hidden"|<style>.*?</style>', "", html), path
            assert "mail.task" in html, path


async def test_a_reader_sees_no_form(make_site: MakeSite) -> None:
    site = await make_site()
    await failed_jobs(site.app.engine, "send", unreachable(30))
    await enqueue(site.app.engine, queue="mail")
    await site.app.pause("mail")
    async with signed_in(site, await a_key(site.app, "read")) as browser:
        html = (await browser.get("/ui/")).text
        assert cards(html)
        forms = re.findall(r'<form method="post" action="([^"]*)"', html)
        assert forms == ["/ui/session/end"]
        assert "/jobs/bulk" not in html


async def test_hostile_names_are_text(clocked: Site, clock: Clock) -> None:
    engine = clocked.app.engine
    worker = await a_worker(engine, HOSTILE)
    for _ in range(2):
        await enqueue(engine, lane=HOSTILE)
    await claim(engine, worker, 1)
    await advance(clock, engine, LONG_SECONDS + 1, worker)
    await failed_jobs(engine, "send", [("Odd<b>Error", HOSTILE)] * 30)
    for path in ("/", "/errors"):
        html = await shown(clocked, path)
        assert "<script>alert" not in html
        assert "Odd<b>" not in html
        assert "Odd&lt;b&gt;Error" in html
        assert "(49)" not in re.findall(r"[^<>]*&lt;script[^<>]*", html)[0]


def test_remedies_are_split_into_words_and_lines() -> None:
    told = "Look at it: headrace jobs show 1; to let the others pass: headrace jobs cancel 1"
    assert remedy_of(told) == [
        ("Look at it:", "headrace jobs show 1"),
        ("To let the others pass:", "headrace jobs cancel 1"),
    ]
    assert remedy_of("Read its log.") == [("Read its log.", "")]
    assert remedy_of("") == []


async def until_well(page: Page) -> None:
    await page.wait_for_function(
        "() => document.getElementById('health')?.textContent.startsWith('All is well.')"
    )


async def test_a_queue_is_resumed_by_keyboard(
    clocked: Site, clock: Clock, windows: Windows
) -> None:
    site, engine = clocked, clocked.app.engine
    await some_minutes(site.app, clock)
    await a_worker(engine, "w1")
    await enqueue(engine, queue="mail")
    await site.app.pause("mail", reason="provider is down", by="ada")
    await failed_jobs(engine, "send", unreachable(3), queue="other")
    page = await windows.open(f"{site.base}/", width=390)
    await is_live(page)
    assert await page.inner_text("#health") == "1 thing needs you."
    for details in await page.locator("#live-hour summary").all():
        await details.click()
    await check_looks(page)
    # That may have taken as long as a lease.
    await a_worker(engine, "w2")
    await page.locator(".finding summary").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector("dialog[open]")
    await page.locator("dialog button.primary").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_selector(".said")
    await until_well(page)
    [queue] = [each for each in await site.app.queues() if each.name == "mail"]
    assert not queue.paused
