"""Three workers that are killed and frozen while they start jobs of many keys at a rate.

Handlers write down when the engine has counted their starts, in a log outside of it. How many were
counted in all is told by the tokens of the jobs: each claim gives a new one.
`make rate-kills` does the same with 10,000 jobs of 100 keys.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

import headrace
from headrace.model.limits.rate import Rate, as_rate
from tests.crash.conftest import SHORT, Scene
from tests.support.processes import Process, until

JOBS = int(os.environ.get("HEADRACE_TEST_RATE_JOBS", "200"))
LONG_RUN = JOBS > 1_000
KEYS = 100 if LONG_RUN else 10
RATE = "2/s" if LONG_RUN else "4/s"
BURST = 2
# What is left when it is judged, so that no key has run dry by then.
LEFT = 0.2
# Of the allowed rate. In a short run a single late start weighs more.
USED = 0.95 if LONG_RUN else 0.8
WORKERS = 3
PAUSE = 1.0


def most_in(times: Sequence[float], window: float) -> int:
    """The most of these that are in one half-open window of this length."""
    ordered = sorted(times)
    most = first = 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] >= window - 1e-6:
            first += 1
        most = max(most, last - first + 1)
    return most


def too_many(rate: Rate, times: Sequence[float]) -> list[str]:
    """The windows that have more starts than the rate allows."""
    windows = [n * rate.interval for n in (1, 2, 3, 5, 10, 20, 50)]
    return [
        f"{found} in {window:g} s"
        for window, n in zip(windows, (1, 2, 3, 5, 10, 20, 50), strict=True)
        if (found := most_in(times, window)) > n + rate.burst - 1
    ]


def test_the_judge_finds_one_start_too_many() -> None:
    rate = as_rate("2/s", 2)
    allowed = [0.0, 0.0, 0.5, 1.0, 1.5, 10.0, 10.0]
    assert too_many(rate, allowed) == []
    assert too_many(rate, [*allowed, 1.2]) == ["5 in 1.5 s"]


class Disturber:
    """Kills and freezes workers in turn."""

    def __init__(self, scene: Scene, workers: list[Process], began: float) -> None:
        self.scene = scene
        self.began = began
        self.workers = workers
        # How often somebody was frozen in the middle of a write: SQLite has one writer at a time,
        # so nobody could start anything until it was thawed.
        self.in_a_write = 0
        # What was done, and when.
        self.done: list[str] = []

    async def disturb(self) -> None:
        """Go on for ever."""
        chance = random.Random(5)
        for number in itertools.count(WORKERS):
            place = chance.randrange(WORKERS)
            moment = await self.scene.app.engine.now() - self.began
            self.done.append(f"{'kill' if number % 2 else 'freeze'} {place} at {moment:.1f}")
            if number % 2:
                self.workers[place].kill()
                name = f"worker{number}"
                self.workers[place] = self.scene.worker(name, lease=SHORT)
                # On a busy machine it takes longer to start than until the next one is frozen.
                await until(functools.partial(self._has_come, name), name)
            else:
                await self._freeze(self.workers[place])
                await asyncio.sleep(1.5 * SHORT)
                self.workers[place].thaw()
            await asyncio.sleep(PAUSE)

    async def _has_come(self, name: str) -> bool:
        return name in {worker.name for worker in await self.scene.app.engine.workers()}

    async def _freeze(self, worker: Process) -> None:
        while True:
            worker.freeze()
            try:
                await asyncio.wait_for(self.scene.app.engine.pause("nobody", False), 0.25)
            except (TimeoutError, headrace.EngineUnavailable):
                worker.thaw()
                self.in_a_write += 1
                # So short a time a burst makes up for, unless the next follows at once.
                await asyncio.sleep(PAUSE)
            else:
                return


@pytest.mark.timeout(600 if LONG_RUN else 60)
async def test_a_rate_is_kept_and_used_while_workers_die_and_hang(scene: Scene) -> None:
    rate = as_rate(RATE, BURST)
    keys = [f"key{n}" for n in range(KEYS)]
    each = JOBS // KEYS
    task = scene.app.tasks["counted"]
    workers = [scene.worker(f"worker{n}", lease=SHORT) for n in range(WORKERS)]
    await scene.has_workers(WORKERS)
    first = await scene.app.engine.now()
    jobs = []
    for key in keys:
        # Wide enough that what a dead worker held blocks nobody.
        lane = headrace.Lane(key, width=100, rate=rate)
        made = [task.options(lane=lane).job(key=key) for _ in range(each)]
        jobs += await scene.app.enqueue_many(made)
    began = await scene.app.engine.now()
    disturber = Disturber(scene, workers, first)
    disturbing = asyncio.create_task(disturber.disturb())
    await asyncio.sleep((1 - LEFT) * each * rate.interval)
    disturbing.cancel()
    await asyncio.gather(disturbing, return_exceptions=True)
    ended = await scene.app.engine.now()
    found = await scene.jobs(jobs)

    counted = defaultdict(list)
    for line in scene.lines("counted"):
        counted[line.lane].append(line.at)
    tokens = [(line.job, line.token) for line in scene.lines("counted")]
    assert len(tokens) == len(set(tokens)), "a claim was written down twice"
    assert counted.keys() == set(keys)
    broken = {key: too_many(rate, counted[key]) for key in keys}
    created = {job.id: job.created_at.timestamp() for job in found}
    for key in (key for key in keys if broken[key]):
        for line in sorted(scene.lines("counted"), key=lambda line: line.at):
            if line.lane == key:
                name, age = line.job[-4:], line.at - created[line.job]
                print(f"{key}: {line.at - first:9.6f} s, job {name}, {line.token}, age {age:.6f} s")
    assert {key: windows for key, windows in broken.items() if windows} == {}
    claims: dict[str | None, int] = defaultdict(int)
    for job in found:
        claims[job.lane] += job.token
    # Before and after that time nobody was disturbed, so each start was written down. Some have
    # come since jobs were read.
    read = {job.id: job.token for job in found}
    times = [line.at for line in scene.lines("counted") if line.token <= read[line.job]]
    beside = sum(not began <= at < ended for at in times)
    allowed = KEYS * (ended - began) / rate.interval
    share = (sum(claims.values()) - beside) / allowed
    print(
        f"{sum(claims.values()) - beside:,} starts of {allowed:,.0f} that were allowed in "
        f"{ended - began:.1f} s: {share:.1%}; frozen in a write {disturber.in_a_write} times"
    )
    if share < USED:
        begun = Counter(int(at - first) for at in times)
        print(f"starts by the second: {[begun[second] for second in range(int(ended - first))]}")
        print(f"disturbed: {disturber.done}")
    assert max(claims.values()) < (ended - first) / rate.interval + rate.burst
    assert share >= USED
