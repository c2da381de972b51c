"""Callers that enqueue by policy, and workers, are killed: exactly the promised jobs exist.

Fifty callers at once, in five processes, of which one after the other is killed, and so are the
workers. While queues are paused it is exact which jobs stand at each key and lane; afterwards each
job has the outcome that its policy promises. `make policy-kills` does the same with 500 deaths for
each engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import pytest

from headrace.model.job import JobFilter
from tests.crash import journal
from tests.crash.conftest import Scene
from tests.crash.policies.judge import Judge, Made, calls_of, made_of
from tests.crash.policies.lives import Told
from tests.support.processes import ROOT, until

KILLS = int(os.environ.get("HEADRACE_TEST_POLICY_KILLS", "6"))
"""How many for each engine."""

PAUSED = KILLS // 3


class Lives:
    """The program with many lives, and what it answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, what: object) -> Counter[str]:
        """Tell it what to do, and wait until it was done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n".encode())
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        return Counter(msgspec.json.decode(line, type=dict[str, int]))


@contextlib.asynccontextmanager
async def lives(scene: Scene) -> AsyncIterator[Lives]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.policies.lives", scene.url, "7"),
        cwd=ROOT,
        env=environment | {journal.VARIABLE: str(scene.journal)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield Lives(process)
    finally:
        # With all that it has started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def stored(scene: Scene) -> list[Made]:
    """Every job. What a killed caller has sent may arrive after its death, so until none does."""

    async def listed() -> list[Made]:
        jobs, cursor = [], None
        while True:
            page = await scene.app.engine.list_jobs(JobFilter(), cursor=cursor, limit=1_000)
            jobs += page.jobs
            cursor = page.cursor
            if cursor is None:
                return [made_of(job) for job in jobs]

    last: list[Made] = []

    async def at_rest() -> bool:
        nonlocal last
        await asyncio.sleep(0.1)
        before, last = last, await listed()
        return bool(last) and before == last

    await until(at_rest, "no more jobs")
    return last


def told(scene: Scene, *events: str) -> list[Told]:
    """What callers and handlers have written down."""
    lines = scene.journal.read_bytes().splitlines()
    found = (msgspec.json.decode(line, type=Told) for line in lines)
    return [line for line in found if line.event in events]


@pytest.mark.timeout(120 + KILLS * 3)
async def test_exactly_the_promised_jobs_exist_whoever_is_killed(scene: Scene) -> None:
    engine = scene.app.engine
    await engine.pause("default", True)
    async with lives(scene) as program:
        ends = await program.ask(PAUSED)
        calls = calls_of(told(scene, "asked", "got", "refused"))
        assert Judge(calls, await stored(scene)).standing() == []
        assert told(scene, "start") == []
        await engine.pause("default", False)
        ends += await program.ask(KILLS - PAUSED)
        ends += await program.ask("drain")
    assert ends.pop("lived on") == 2
    assert ends.keys() <= {"callers killed", "workers killed"}, ends

    calls = calls_of(told(scene, "asked", "got", "refused"))
    jobs = await stored(scene)
    findings = Judge(calls, jobs, told(scene, "start")).findings()
    heard = sum(call.got is not None for call in calls.values())
    statuses = Counter(f"{job.policy} {job.status}" for job in jobs)
    print(
        f"{engine.name}: {dict(ends)}, {len(calls):,} calls of which {heard:,} were answered and "
        f"{sum(call.refused for call in calls.values()):,} refused, {len(jobs):,} jobs: "
        + ", ".join(f"{count:,} {what}" for what, count in sorted(statuses.items()))
    )
    assert findings == []
