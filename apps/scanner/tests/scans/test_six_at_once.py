"""Six platforms asked at once on this machine, by a worker each: every process tree stays within
its memory, as seen from outside. One that does not is ended, and the others do not notice.

`pytest apps/scanner/tests/scans/test_six_at_once.py -s` prints the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from scanner_support.places import Place, Scanning, open_scanner
from scanner_support.trees import LIMIT, alive, below
from tests.support.browser import NONE_FOUND, find_browser
from tests.support.processes import ROOT, Process, Processes, until

from headrace import Status
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.mock_shops.pages import BROWSER_SHOPS
from headrace_scanner.reading.browser import find_chromium
from headrace_scanner.scanning.limits import BROWSER_MEMORY

# Those of the Compose file: 4 GB for a worker with a browser, 2 GB for one without.
API_SHOPS = ("hwahae", "zigzag", "musinsa")
MEMORY = dict.fromkeys(BROWSER_SHOPS, BROWSER_MEMORY) | dict.fromkeys(API_SHOPS, 2 * 10**9)
HUNGRY, ENOUGH = "kurly", 10**9
# What its browser may take until it is ended, beside what any worker takes.
OVER = 1.3
LIMIT_SECONDS = 300.0
MEGABYTE = 10**6


class Trees:
    """The workers by platform, and the most memory that each was seen to use with all below it."""

    def __init__(self, workers: dict[str, Process]) -> None:
        self._workers = workers
        self.most = dict.fromkeys(workers, 0)
        self.processes = dict.fromkeys(workers, 0)
        self.looks = 0

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        """Look again and again while the block runs."""
        task = asyncio.create_task(self._measure())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _measure(self) -> None:
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(0.1)

    def _look(self) -> None:
        for platform, worker in self._workers.items():
            pids = {worker.pid, *below(worker.pid)}
            self.most[platform] = max(self.most[platform], sum(map(_proportional, pids)))
            self.processes[platform] = max(self.processes[platform], len(pids))
        self.looks += 1


def _proportional(pid: int) -> int:
    """Return the memory of a process, with its part of what it shares with others."""
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_full_info().pss)
    return 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("browser", ["lightpanda", "chromium"])
async def test_six_platforms_at_once_within_their_memory(
    browser: str, place: Place, shops: MockShops, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if browser == "chromium":
        if find_browser() is None:
            pytest.skip(NONE_FOUND)
        browser = find_chromium("chromium")
    monkeypatch.setenv("HEADRACE_SCANNER_BROWSER", browser)
    shops.put(HUNGRY, "1", behaviour="hungry")
    shops.hold(*MEMORY)
    async with open_scanner(place, shops) as scanning:
        runs = {
            each: await scanning.execute(f"{each}-validation-v2", {"products": ["1"]})
            for each in MEMORY
        }
        with Processes(tmp_path) as processes:
            workers = {each: a_worker(processes, place, each, browser) for each in MEMORY}
            trees = Trees(workers)
            async with trees.measured():
                await until(lambda: visited(shops), "six visits at once", LIMIT_SECONDS)
                before = {each: below(workers[each].pid) for each in BROWSER_SHOPS}
                # Everybody is looked at while all six are being asked.
                await until(
                    lambda looks=trees.looks: trees.looks >= looks + 2, "some looks", LIMIT_SECONDS
                )
                shops.release(HUNGRY)
                job = await scanning.finished(runs[HUNGRY])
                assert job.status is Status.FAILED
                assert f"tree_memory_limit is {ENOUGH:,}" in str(job.error)
                await until(lambda: not alive(before[HUNGRY]), "its end", LIMIT_SECONDS)
                unharmed(shops, before, workers)
                shops.release()
                for platform in runs.keys() - {HUNGRY}:
                    await check(scanning, platform, runs[platform])
            for each in workers.values():
                each.terminate()
            for each in workers.values():
                await each.ended(60.0)
    ended_at = int(ENOUGH * OVER) + max(trees.most[each] for each in API_SHOPS)
    for platform, limit in (MEMORY | {HUNGRY: ended_at}).items():
        used = trees.most[platform]
        print(f"{platform}: {used // MEGABYTE} MB in {trees.processes[platform]} processes")
        assert 0 < used <= limit
    assert trees.most[HUNGRY] > trees.most["ably"]


def a_worker(processes: Processes, place: Place, platform: str, browser: str) -> Process:
    """Start a worker for one platform; the one whose shop is hungry has less memory."""
    more = {"PYTHONPATH": f"{ROOT}:{Path(__file__).parents[1]}", LIMIT: str(ENOUGH)}
    which = ["--app", "scanner_support.limited:app"] if platform == HUNGRY else []
    return processes.headrace(
        *("worker", *(which or ["--bundle", "scanner"]), "--name", platform),
        **place.environment,
        **(more if which else {}),
        HEADRACE_SCANNER_BROWSER=browser,
        HEADRACE_SCANNER_VISIT_SECONDS="900",
        WORKER_PLATFORMS=platform,
    )


def visited(shops: MockShops) -> bool:
    """Return whether all six are being asked, at this moment."""
    return {each.shop for each in shops.visits if each.ended is None} == {*MEMORY}


def unharmed(shops: MockShops, before: dict[str, set[int]], workers: dict[str, Process]) -> None:
    """The others are still being asked, on the same connections, and no worker has ended."""
    there = {each.shop for each in shops.visits if each.ended is None}
    assert there == MEMORY.keys() - {HUNGRY}
    for platform in before.keys() - {HUNGRY}:
        assert alive(before[platform])
    assert [each.code for each in workers.values()] == [None] * len(workers)


async def check(scanning: Scanning, platform: str, run: str) -> None:
    """The run has read what its shop says."""
    job = await scanning.finished(run)
    assert job.status is Status.COMPLETED, job.error
    [seen] = (await scanning.get(run))["items"]
    assert seen["price"] == scanning.shops.look(platform, "1").price
