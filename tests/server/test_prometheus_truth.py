"""What Prometheus shows under load is what happened: measured outside, while workers come and go.

`make prometheus-soak MINUTES=10` runs it for longer.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from bisect import bisect_left
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from headrace.monitor.metrics.counters import MOST_HISTOGRAMS
from headrace.telemetry import BOUNDS, OTHERS
from tests.server.conftest import address_of
from tests.support.processes import Process, Processes, until
from tests.support.prometheus import Prometheus, run_tool, start_prometheus, tool

MINUTES = float(os.environ.get("HEADRACE_TEST_PROMETHEUS_MINUTES", "0"))
LIMIT = 240.0
TASKS = 500
LANES = 10_000
# A worker is restarted after so many seconds, in turn by a signal and without any warning.
PAUSE = 20.0 if MINUTES else 2.0
ROUNDS = math.ceil(MINUTES * 60 / PAUSE) or 3
BATCH = 40
# How often it is scraped, and how long that may take.
SCRAPE = 5 if MINUTES else 2
# Jobs that were killed may run after the next restarts; their leases are short.
LEASE = "3"
LONGEST_LANES = 100

SHOP = f"""
import asyncio
import os
import time

import headrace

app = headrace.App()
journal = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


async def work(ctx: headrace.Context, due: float, seconds: float) -> None:
    started = time.time()
    await asyncio.sleep(seconds)
    ended = time.time()
    # One write, so that lines of several processes do not mix.
    os.write(journal, f"{{due}} {{started}} {{ended}} {{ctx.attempt}}\\n".encode())


for number in range({TASKS}):
    app.task(name=f"task.{{number:03}}")(work)


@app.task(queue="lanes", lane="user:{{user}}")
async def lane(user: int) -> None: ...
"""
CONFIGURATION = """
global: {{scrape_interval: {seconds}s, scrape_timeout: {seconds}s}}
scrape_configs:
  - job_name: headrace-server
    static_configs: [{{targets: ["{target}"]}}]
"""


class Run(NamedTuple):
    """One attempt, as its handler saw it. `due` is when its producer sent it."""

    due: float
    started: float
    ended: float
    attempt: int


def read(journal: Path) -> list[Run]:
    """What handlers have written so far."""
    lines = [line.split() for line in journal.read_text(encoding="utf-8").splitlines()]
    return [Run(float(due), float(start), float(end), int(n)) for due, start, end, n in lines]


def p95(values: list[float]) -> float:
    """The value that 95 of 100 do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def bucket(seconds: float) -> int:
    """Which bucket a value falls into."""
    return bisect_left(BOUNDS, seconds)


async def lowered(prometheus: Prometheus) -> dict[str, float]:
    """Counters that have ever gone back, with how often."""
    found = {}
    for name in await prometheus.get("label/__name__/values"):
        if name.startswith("headrace_") and name.endswith(("_total", "_count", "_sum", "_bucket")):
            resets = await prometheus.value(f"max(resets({name}[2h]))")
            if resets:
                found[name] = resets
    return found


@pytest.mark.timeout(400 + MINUTES * 120)
async def test_percentiles_are_the_truth_and_series_are_bounded(tmp_path: Path) -> None:
    tool("prometheus"), tool("promtool")
    journal = tmp_path / "journal"
    journal.touch()
    (tmp_path / "shop.py").write_text(SHOP)
    where = {
        "HEADRACE_URL": f"sqlite:///{tmp_path}/jobs.db",
        "HEADRACE_APP": "shop",
        "HEADRACE_LEASE_SECONDS": LEASE,
        "JOURNAL": str(journal),
    }
    with Processes(tmp_path) as processes:
        server = processes.headrace("server", "--port", "0", "--json", **where)
        address = await address_of(server)
        target = address.removeprefix("http://")
        configuration = tmp_path / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(target=target, seconds=SCRAPE))
        async with (
            start_prometheus(processes, configuration) as prometheus,
            httpx.AsyncClient(base_url=address, timeout=LIMIT) as client,
        ):
            await enqueue_lanes(client)
            load = Load(client)
            loading = asyncio.create_task(load.run())
            try:
                kills = await restarts(processes, where)
            finally:
                load.over = True
            await loading

            # All of them, also those of workers that were killed.
            async def all_done() -> bool:
                await asyncio.sleep(SCRAPE / 4)
                return len({run.due for run in read(journal)}) == load.sent

            await until(all_done, "the end of all jobs", LIMIT)
            last = processes.started[-1]
            last.terminate()
            assert await last.ended(LIMIT) == 0
            runs = read(journal)
            completed = 'sum(headrace_attempts_total{outcome="completed"})'

            # What a killed worker did last is never counted; everything else is, once.
            async def counted() -> bool:
                await asyncio.sleep(SCRAPE / 2)
                page = (await client.get("/metrics")).text
                return completed_of(page) == await prometheus.value(completed)

            await until(counted, "a scrape of the last numbers", LIMIT)
            total = await prometheus.value(completed)
            assert total <= len(runs)
            print(f"\n{len(runs)} attempts, {int(total)} counted, {kills} workers killed")
            answered = await prometheus.value("avg_over_time(up[2h])")
            slowest = await prometheus.value("max_over_time(scrape_duration_seconds[2h])")
            print(f"{answered:.1%} of the scrapes answered, the slowest in {slowest:.3f} s")
            await judge_percentiles(prometheus, runs)
            await judge_series(prometheus)
            assert await lowered(prometheus) == {}
            text = (await client.get("/metrics")).content
    await run_tool(tool("promtool"), "check", "metrics", given=text)


def completed_of(page: str) -> float:
    """How many attempts have completed, by a page of metrics."""
    lines = (line for line in page.splitlines() if line.startswith("headrace_attempts_total"))
    return sum(float(line.rpartition(" ")[2]) for line in lines if "completed" in line)


async def enqueue_lanes(client: httpx.AsyncClient) -> None:
    """Two jobs in each of the lanes, of a queue that nobody serves."""
    for first in range(0, LANES, 500):
        users = [user for user in range(first, first + 500) for _ in range(2)]
        jobs = [{"task": "lane", "args": {"user": user}} for user in users]
        (await client.post("/jobs/batch", json={"jobs": jobs})).raise_for_status()


class Load:
    """Jobs of all tasks in turn, in batches; the last of a batch wait for the first."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._random = random.Random(1)
        self.over = False
        self.sent = 0

    async def run(self) -> None:
        """Send until told to stop, and all tasks at least once."""
        names = cycle(f"task.{number:03}" for number in range(TASKS))
        while not self.over or self.sent < TASKS:
            jobs = []
            for task in islice(names, BATCH):
                # The time that the producer knows, a different one for each.
                due = time.time()
                seconds = self._random.choice((0.01, 0.02, 0.05, 0.2))
                jobs.append({"task": task, "args": {"due": due, "seconds": seconds}})
                self.sent += 1
            (await self._client.post("/jobs/batch", json={"jobs": jobs})).raise_for_status()
            await asyncio.sleep(0.5)


async def restarts(processes: Processes, where: dict[str, str]) -> int:
    """Replace one of two workers again and again; how many were killed."""

    def worker(number: int) -> Process:
        return processes.headrace("worker", "--queues", "default", "--name", f"w{number}", **where)

    workers = [worker(0), worker(1)]
    kills = 0
    for number in range(ROUNDS):
        place = number % 2
        for each in workers:
            # On a busy machine a worker may take longer to start than this pause.
            await until(lambda: "serves default" in each.said, "a worker that serves", LIMIT)  # noqa: B023
        # The load goes on for a while; nothing is waited for.
        await asyncio.sleep(PAUSE)
        if number % 4 < 2:
            workers[place].terminate()
            await workers[place].ended(LIMIT)
        else:
            workers[place].kill()
            kills += 1
        workers[place] = worker(place)
    first = workers[(ROUNDS - 1) % 2 ^ 1]
    first.terminate()
    await first.ended(LIMIT)
    return kills


async def judge_percentiles(prometheus: Prometheus, runs: list[Run]) -> None:
    """The p95 of waiting and of running, within one bucket of the truth."""
    # When a job that was killed became due again is not known outside.
    first = [run for run in runs if run.attempt == 1]
    truth = {
        "wait": p95([run.started - run.due for run in first]),
        "run": p95([run.ended - run.started for run in first]),
    }
    for name, outside in truth.items():
        query = f"histogram_quantile(0.95, sum by (le) (headrace_{name}_seconds_bucket))"
        inside = await prometheus.value(query)
        print(f"p95 of {name}: {inside:.4f} s by PromQL, {outside:.4f} s outside")
        assert abs(bucket(inside) - bucket(outside)) <= 1, (name, inside, outside)


async def judge_series(prometheus: Prometheus) -> None:
    """500 tasks have counters, 100 have histograms, 100 lanes are shown, and that is all."""
    tasks = await prometheus.value("count(count by (task) (headrace_attempts_total))")
    assert tasks == TASKS
    histograms = await prometheus.ask("count by (task) (headrace_run_seconds_count)")
    assert len(histograms) == MOST_HISTOGRAMS + 1
    assert OTHERS in {each["metric"]["task"] for each in histograms}
    assert await prometheus.value("count(headrace_lane_waiting)") == LONGEST_LANES
    samples = await prometheus.value("max_over_time(scrape_samples_scraped[2h])")
    histogram = len(BOUNDS) + 3
    most = (
        # Completed, retry and lost at most; buckets, count and sum of waiting and running.
        3 * TASKS
        + 2 * (MOST_HISTOGRAMS + 1) * histogram
        + 2 * LONGEST_LANES
        # The round trips, two queues, some workers, and single numbers.
        + histogram
        + 100
    )
    print(f"{int(samples)} series at most, {most} allowed")
    assert samples <= most
