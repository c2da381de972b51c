"""A worker is killed while its browser is alive, again and again: nothing below it is left.

The suite kills two workers with each browser; `make browser-kills` a hundred with lightpanda and
twenty with Chromium.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from scanner_support.places import Place, Scanning, open_scanner
from scanner_support.trees import MARK, alive, below, browsers, commands, marked
from tests.support.browser import NONE_FOUND, find_browser
from tests.support.processes import Process, Processes, until

from headrace import Status
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.mock_shops.server import Visit
from headrace_scanner.reading.browser import find_chromium

ASKED = int(os.environ.get("HEADRACE_TEST_BROWSER_KILLS", "2"))
# Chromium takes much longer to start.
KILLS = {"lightpanda": ASKED, "chromium": min(ASKED, max(2, ASKED // 5))}
PLATFORM = "kurly"
LIMIT = 300.0
# How long all below a killed worker may live on.
END_SECONDS = 30.0


@dataclass
class Deaths:
    """What was seen of the kills."""

    processes: list[int] = field(default_factory=list)
    """How many were below the worker, each time."""
    seconds: list[float] = field(default_factory=list)
    """How long it took until all of them were gone."""
    browsers: list[int] = field(default_factory=list)
    """How many of them were the browser."""


@pytest.mark.timeout(600 + ASKED * 30)
@pytest.mark.parametrize("browser", list(KILLS))
async def test_nothing_is_left_of_workers_that_are_killed_with_a_browser(
    browser: str, place: Place, shops: MockShops, tmp_path: Path
) -> None:
    kills = KILLS[browser]
    if browser == "chromium":
        if find_browser() is None:
            pytest.skip(NONE_FOUND)
        browser = find_chromium(browser)
    mark, deaths = uuid4().hex, Deaths()
    place.environment.update(
        {
            MARK: mark,
            "HEADRACE_SCANNER_BROWSER": browser,
            # The shop holds its visitors for as long as it takes to look at them.
            "HEADRACE_SCANNER_VISIT_SECONDS": "900",
            "WORKER_PLATFORMS": PLATFORM,
        }
    )
    async with open_scanner(place, shops) as scanning:
        with Processes(tmp_path) as processes:
            for number in range(kills):
                shops.hold(PLATFORM)
                run = await ask_for(scanning, f"k{number}")
                worker = a_worker(processes, place)
                visit = await visited(shops, f"k{number}", worker)
                await kill(worker, visit, mark, deaths)
                # Whoever takes its job over shall not ask again.
                await scanning.app.cancel(run)
                shops.release()
            # And the platform is asked as before.
            run = await ask_for(scanning, "good")
            worker = a_worker(processes, place)
            job = await scanning.finished(run)
            assert job.status is Status.COMPLETED, job.error
            [seen] = (await scanning.get(run))["items"]
            assert seen["price"] == shops.look(PLATFORM, "good").price
            worker.terminate()
            assert await worker.ended(60.0) == 0
            await until(lambda: not marked(mark), "the end of all processes", END_SECONDS)
        assert await scanning.app.engine.audit() == []
    assert len(deaths.seconds) == kills
    print(
        f"{browser}: {kills} kills of a worker with a live browser; below it were "
        f"{min(deaths.processes)} to {max(deaths.processes)} processes, {min(deaths.browsers)} to "
        f"{max(deaths.browsers)} of them the browser's; all were gone after "
        f"{max(deaths.seconds):.2f} s at most, none was left"
    )


async def ask_for(scanning: Scanning, product: str) -> str:
    """Ask for a run of one product."""
    return await scanning.execute(f"{PLATFORM}-validation-v2", {"products": [product]})


def a_worker(processes: Processes, place: Place) -> Process:
    """Start a worker; by its name it takes over at once what the one before has left."""
    return processes.headrace(
        "worker", "--bundle", "scanner", "--name", "steady", **place.environment
    )


async def visited(shops: MockShops, product: str, worker: Process) -> Visit:
    """Wait until a browser below the worker is at the shop."""

    def there() -> Visit | None:
        assert worker.code is None, worker.said
        found = [each for each in shops.visits if each.product == product and each.ended is None]
        return found[0] if found and browsers(below(worker.pid)) else None

    visit = await until(there, f"the visit of {product}", LIMIT)
    assert visit is not None
    return visit


async def kill(worker: Process, visit: Visit, mark: str, deaths: Deaths) -> None:
    """Kill a worker, and wait until all below it is gone, and its visitor with it."""
    tree = below(worker.pid)
    shown = browsers(tree)
    assert shown, commands(tree)
    began = time.monotonic()
    worker.kill()
    left = lambda: alive(tree) | marked(mark)  # noqa: E731
    try:
        await until(lambda: not left(), "the end of all below a killed worker", END_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}: {commands(left())} live on") from None
    deaths.seconds.append(time.monotonic() - began)
    deaths.processes.append(len(tree))
    deaths.browsers.append(len(shown))
    await until(lambda: visit.ended is not None, "the end of the visit", END_SECONDS)
    assert not visit.answered
