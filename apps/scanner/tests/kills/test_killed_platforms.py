"""Eight platforms, each under two workers that are killed: never two at once on a platform, in
order, with priorities; what runs is shown exactly; no process is left behind.

The shops judge, by their own log. The suite has four workers and a few kills on SQLite;
`make scanner-kills` has sixteen and sixty, on each engine.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import sqlalchemy as sa
from scanner_support.places import Place, Scanning, a_place, open_scanner
from scanner_support.trees import MARK, alive, below, browsers, commands, marked
from tests.support.processes import Process, Processes, until
from tests.support.stores import ENGINES, Stores

from headrace.server.listen import listening
from headrace_scanner.mock_shops import MockShops
from headrace_scanner.mock_shops.server import Visit
from headrace_scanner.platforms import NAMES, SHOPS

KILLS = int(os.environ.get("HEADRACE_TEST_SCANNER_KILLS", "4"))
LONG = KILLS > 10
RUNS = 6 if LONG else 3
PRODUCTS = 4 if LONG else 2
GROUPS: Sequence[Sequence[str]] = [[name] for name in NAMES] if LONG else [NAMES[:4], NAMES[4:]]
LIMIT = 600.0 if LONG else 300.0
# The last run of each platform is asked for last, and has the highest priority.
ORDER = [RUNS - 1, *range(RUNS - 1)]


class Workers:
    """Two workers for each group of platforms. One that is killed is started again by its name."""

    def __init__(self, processes: Processes, place: Place) -> None:
        self.mark = uuid4().hex
        self._processes = processes
        self._environment = {**place.environment, MARK: self.mark}
        self.running: dict[str, Process] = {}
        self.with_browser = 0
        """Kills of a worker whose browser was alive."""

    def start_all(self) -> None:
        for number, group in enumerate(GROUPS):
            for twin in ("a", "b"):
                self.start(f"{number}{twin}", group)

    def start(self, name: str, group: Sequence[str]) -> None:
        self.running[name] = self._processes.headrace(
            *("worker", "--bundle", "scanner", "--name", name),
            **self._environment,
            WORKER_PLATFORMS=",".join(group),
        )

    async def kill(self, name: str) -> list[str]:
        """Kill a worker, wait until all below it is gone, and start it again; return what was."""
        worker = self.running[name]
        tree = below(worker.pid)
        programs = commands(tree)
        self.with_browser += bool(browsers(tree))
        worker.kill()
        await until(lambda: not alive(tree), f"the end of {programs} of a killed worker", 30.0)
        self.start(name, GROUPS[int(name[:-1])])
        return programs

    async def stop(self) -> None:
        for worker in self.running.values():
            worker.terminate()
        for worker in self.running.values():
            await worker.ended(60.0)
        await until(lambda: not marked(self.mark), "the end of all processes", 30.0)


@pytest.mark.timeout(int(LIMIT) * 2 + 60)
@pytest.mark.parametrize("engine", ENGINES if LONG else ["sqlite"])
async def test_one_at_a_time_on_each_platform_while_workers_are_killed(
    engine: str,
    stores: Stores,
    shops: MockShops,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = a_place(stores, engine, tmp_path, shops, s3=False)
    # Shops hold their visitors for as long as it takes to look at them.
    place.environment["HEADRACE_SCANNER_VISIT_SECONDS"] = "900"
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    async with open_scanner(place, shops) as scanning:
        with Processes(tmp_path) as processes:
            runs = {name: await ask_for(scanning, name) for name in SHOPS}
            workers = Workers(processes, place)
            shops.hold(*NAMES)
            workers.start_all()
            await until(lambda: {each.shop for each in shops.visits} == {*SHOPS}, "visits", LIMIT)
            # While workers wait for it: else the first would begin before the last is asked for.
            await scanning.app.pause("extract")
            runs["extract"] = await ask_for(scanning, "extract")
            await scanning.app.resume("extract")
            await check_running(scanning, processes, runs, place)
            shops.release()
            killed = await kill_some(workers, shops)
            for each in itertools.chain(*runs.values()):
                job = await scanning.finished(each)
                assert job.status == "completed", f"{job.error}"
            await workers.stop()
        assert [judge(shops.visits, name) for name in NAMES] == [[]] * len(NAMES)
        await check_rows(scanning, runs)
        assert await scanning.app.engine.audit() == []
    print(
        f"{engine}: {len(workers.running)} workers, {KILLS} kills, "
        f"{workers.with_browser} of them with a live browser, "
        f"{sum(map(len, runs.values()))} runs, {len(shops.visits)} requests; "
        f"killed with them: {sorted(set(killed))}"
    )


async def ask_for(scanning: Scanning, platform: str) -> list[str]:
    """Ask for runs of a platform, the last one with a priority; return them in that order."""
    shop, found = scanning.shops, []
    for number in range(RUNS):
        products = [shop.page(platform, f"r{number}-{each}") for each in range(PRODUCTS)]
        more = {"priority": 9} if number == RUNS - 1 else {}
        params: dict[str, Any] = {"products": products}
        if platform == "extract":
            params = {"type": "url_extraction", "url": products[0]}
        found.append(await scanning.execute(f"{platform}-validation-v2", params, **more))
    return found


async def check_running(
    scanning: Scanning, processes: Processes, runs: dict[str, list[str]], place: Place
) -> None:
    """While each shop holds its visitor, what runs is known from outside."""
    expected = {(name, runs[name][-1], f"{name}-validation-v2") for name in SHOPS}

    def shown(body: dict[str, Any]) -> set[tuple[str, str, str]]:
        found = body["data"]["running"]
        assert body["data"]["summary"]["running_count"] == len(found)
        return {(each["platform"], each["job_id"], each["workflow_id"]) for each in found}

    async def by_api() -> bool:
        body = (await scanning.client.get("/api/v2/jobs/running")).json()
        queued = body["data"]["queued"]
        waiting = all(queued[name] >= RUNS - 1 for name in NAMES if name != "default")
        return shown(body) == expected and waiting

    await until(by_api, "the exact list of running jobs", LIMIT)
    async with listening(scanning.app, host="127.0.0.1", port=0) as address:
        for environment in (place.environment, {"API_URL": address}):
            command = processes.headrace("running", "--json", **environment)
            assert await command.ended(LIMIT) == 0, command.said
            assert shown(msgspec.json.decode(command.said)) == expected
    platforms = {each.platform: each for each in await scanning.scanner.platforms()}
    for name in SHOPS:
        running = platforms[name].running
        assert running is not None
        assert (running.job_id, running.step) == (runs[name][-1], "scan")
        assert platforms[name].waiting[0].job_id == runs[name][0]


async def kill_some(workers: Workers, shops: MockShops) -> list[str]:
    """Kill workers in turn, each after some more visits; return the programs killed with them."""
    programs: list[str] = []
    names = list(workers.running)
    total = sum(RUNS * PRODUCTS for _ in SHOPS) + RUNS
    pace = max(total // (KILLS * 2), 1)
    for number in range(KILLS):
        seen = len(shops.visits)
        goal = min(seen + pace, total - 1)
        await until(lambda goal=goal: len(shops.visits) >= goal, "more visits", LIMIT)  # type: ignore[misc]
        programs += await workers.kill(names[number % len(names)])
    return programs


def domain(name: str) -> str:
    """Shops that nobody knows are those of the queue `default`."""
    return "default" if name == "extract" else name


def judge(visits: Sequence[Visit], name: str) -> list[str]:
    """Return what was wrong on a platform: two at once, or runs in another order."""
    ours = sorted((each for each in visits if domain(each.shop) == name), key=lambda v: v.began)
    wrong = [
        f"{first.product} until {first.ended}, {second.product} from {second.began}"
        for first, second in itertools.pairwise(ours)
        if first.ended is None or second.began < first.ended
    ]
    for shop in {each.shop for each in ours}:
        began = list(_runs(each for each in ours if each.shop == shop))
        if began != ORDER:
            wrong.append(f"{shop}: runs {began}")
    return wrong


def _runs(visits: Iterator[Visit] | Any) -> Iterator[int]:
    for number, _ in itertools.groupby(visits, key=lambda each: each.product.partition("-")[0]):
        yield int(number[1:])


async def check_rows(scanning: Scanning, runs: dict[str, list[str]]) -> None:
    """The tables, read by themselves: each run is completed, and has seen each product once."""
    query = sa.text(
        "SELECT s.scan_id, s.status, s.seen, s.written, "
        "(SELECT count(*) FROM observations o WHERE o.scan_id = s.scan_id) FROM scans s"
    )
    async with scanning.service.setup.engine().connect() as connection:
        rows = {row[0]: tuple(row[1:]) for row in await connection.execute(query)}
    for name in SHOPS:
        for run in runs[name]:
            assert rows[run] == ("completed", PRODUCTS, True, PRODUCTS)
    # Extract jobs have had a run each on `default`.
    assert len(rows) == sum(map(len, runs.values()))
