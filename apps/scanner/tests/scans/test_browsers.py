"""Platforms that need a browser: scripts have run before a price is read, and the whole process
tree of a browser ends with its job, however that ends.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from scanner_support.places import Place, Scanning, open_scanner
from scanner_support.trees import MARK, alive, below, commands, own
from tests.support.browser import NONE_FOUND, find_browser
from tests.support.processes import until

import headrace
from headrace import Status
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.reading.browser import find_chromium

LIMIT = 300.0


@asynccontextmanager
async def a_worker(scanning: Scanning) -> AsyncIterator[headrace.JobOrchestrator]:
    worker = headrace.JobOrchestrator(scanning.app)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop()


@pytest.mark.timeout(700)
async def test_prices_that_scripts_render_are_read(scanning: Scanning) -> None:
    shops = scanning.shops
    shops.put("oliveyoung", "2", status="sold_out")
    shops.put("oliveyoung", "3", behaviour="gone")
    shops.put("oliveyoung", "4", behaviour="blocked")
    shops.put("oliveyoung", "5", behaviour="broken")
    ids = {"oliveyoung": ["1", "2", "3", "4", "5"], "ably": ["1"], "kurly": ["1"]}
    async with a_worker(scanning):
        # Six at once would be fine; one after the other is kinder to this machine.
        for platform, wanted in ids.items():
            run = await scanning.execute(f"{platform}-validation-v2", {"products": wanted})
            job = await scanning.finished(run)
            assert job.status is Status.COMPLETED, job.error
            scan = await scanning.get(run)
            seen = {each["external_id"]: each for each in scan["items"]}
            goods = shops.look(platform, "1")
            assert (seen["1"]["name"], seen["1"]["price"]) == (goods.name, goods.price)
            if platform == "oliveyoung":
                assert seen["2"]["sale_status"] == "sold_out"
                assert seen["3"]["sale_status"] == "gone"
                assert (seen["4"]["outcome"], seen["5"]["outcome"]) == ("blocked", "failed")
    assert {each.shop for each in shops.visits if each.script} == {*ids}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("browser", ["lightpanda", "chromium"])
async def test_a_browser_ends_with_its_job(
    browser: str, place: Place, shops: MockShops, monkeypatch: pytest.MonkeyPatch
) -> None:
    if browser == "chromium":
        if find_browser() is None:
            pytest.skip(NONE_FOUND)
        # A path goes through the same door as the name.
        browser = find_chromium("chromium")
    monkeypatch.setenv("HEADRACE_SCANNER_BROWSER", browser)
    mark, before = uuid4().hex, below(os.getpid())
    monkeypatch.setenv(MARK, mark)
    name = os.path.basename(browser)
    async with open_scanner(place, shops) as scanning, a_worker(scanning):
        # It reads; then it is cancelled while a page holds it; then its time is up, which is the
        # same for any browser and takes its time.
        good = await scanning.execute("kurly-validation-v2", {"products": ["1"]})
        job = await scanning.finished(good)
        assert job.status is Status.COMPLETED, job.error
        assert (await scanning.get(good))["items"][0]["price"] == shops.look("kurly", "1").price
        for end in ("cancel", "timeout"):
            run = await _held(scanning, "2", limited=end == "timeout")
            browsers = {pid for pid in own(mark, before) if name in "".join(commands({pid}))}
            assert browsers, commands(own(mark, before))
            if end == "cancel":
                await scanning.app.cancel(run)
            await until(lambda all_=browsers: not alive(all_), "the end of the browser", LIMIT)  # type: ignore[misc]
            job = await scanning.finished(run)
            assert job.status in (Status.CANCELLED, Status.FAILED), job.error
            shops.release()
            row = await scanning.get(run)
            assert row["status"] == "failed"
            await until(lambda: shops.visits[-1].ended is not None, "the end of the visit", LIMIT)
        # All of its processes together need more than this.
        _limit(scanning, seconds=600.0, memory=48 * 1024**2)
        run = await scanning.execute("kurly-validation-v2", {"products": ["3"]})
        job = await scanning.finished(run)
        assert job.status is Status.FAILED
        assert "tree_memory_limit is 50,331,648" in str(job.error)
    await until(lambda: not alive(own(mark, before)), "the end of all child processes", 30.0)


async def test_a_browser_and_all_that_it_starts_have_4_gib(scanning: Scanning) -> None:
    policy = scanning.app.tasks["scanner.scan_browser"].policy
    assert (policy.isolate, policy.tree_memory_limit) == ("process", 4 * 1024**3)


async def _held(scanning: Scanning, product: str, *, limited: bool) -> str:
    """Begin a scan whose page holds its browser, and return its id. One that is `limited` ends by
    its time; on a busy machine that has to be longer for a visit.
    """
    shops, seconds = scanning.shops, 3.0
    while True:
        visits = len(shops.visits)
        shops.hold("kurly")
        if limited:
            _limit(scanning, seconds=seconds)
        run = await scanning.execute("kurly-validation-v2", {"products": [product]})

        async def visited_or_over(run: str = run, seen: int = visits) -> bool:
            return len(shops.visits) > seen or (await scanning.app.get(run)).status.final

        await until(visited_or_over, "the visit", LIMIT)
        if len(shops.visits) > visits:
            return run
        assert limited, (await scanning.app.get(run)).error
        shops.release()
        seconds *= 4


def _limit(scanning: Scanning, seconds: float, memory: int = 4 * 1024**3) -> None:
    """Let browser scans have so many seconds and so much memory, and one attempt."""
    import msgspec

    task = scanning.app.tasks["scanner.scan_browser"]
    retry = headrace.RetryPolicy(retries=0)
    task.policy = msgspec.structs.replace(
        task.policy, timeout=seconds, retry=retry, tree_memory_limit=memory
    )
    task.max_attempts = 1
