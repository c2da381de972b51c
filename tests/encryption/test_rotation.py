"""Rotating keys: while jobs run, on every engine, and what the command tells of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headrace
from headrace.admin.encryption_keys import Rotation, rotate_encryption
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import MessageParser
from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.encryption.conftest import BOTH, K1, K2, Make, Worker
from tests.encryption.test_records import message

HEADRACE = str(Path(sys.executable).parent / "headrace")
JOBS = 60


def used(found: Rotation) -> dict[str, tuple[int, int, int]]:
    return {each.key: (each.unfinished, each.finished, each.records) for each in found.keys}


async def test_rotating_while_jobs_run_loses_nothing(url: str, make: Make, worker: Worker) -> None:
    """As the documentation says: first everybody has the new key, then it seals, then the old one
    is dropped when nothing needs it.
    """
    old, adding, new, last = (
        make(url, keys) for keys in (f"k1:{K1}", f"k1:{K1},k2:{K2}", BOTH, f"k2:{K2}")
    )
    enqueued: list[headrace.Job] = []
    for app in (old, adding, new, last):

        @app.task("steps", encrypt=True)
        async def steps(ctx: headrace.Context, number: int) -> int:
            await ctx.stage("one", str, str(number))
            await ctx.sleep(1.05)  # the next run is by another worker, perhaps
            return number + int(await ctx.stage("two", str, str(number)))

    async def produce(app: headrace.App) -> None:
        for number in range(JOBS // 3):
            enqueued.append(await app.tasks["steps"].enqueue(number))
            await asyncio.sleep(0.005)

    workers = [worker(old, max_workers=5)]
    await workers[0].start()
    for app in (old, adding, new):
        producing = asyncio.ensure_future(produce(app))
        # One worker after the other is replaced by one with the next keys.
        started = worker(adding if app is old else new, max_workers=5)
        await started.start()
        await workers.pop().stop()
        workers.append(started)
        await producing
    assert len(enqueued) == JOBS
    results = await asyncio.gather(*(new.result(job, timeout=30) for job in enqueued))
    assert results == [2 * job.args["number"] for job in enqueued]
    jobs = (await new.list(JobFilter(tasks=("steps",)), limit=1_000)).jobs
    assert {(job.status, job.attempt) for job in jobs} == {(Status.COMPLETED, 1)}
    assert {job.sealed_with for job in jobs} == {"k1", "k2"}
    found = await rotate_encryption(new)
    assert not found.complete
    assert used(found)["k1"][1] >= JOBS // 3
    # When the jobs of the old key are pruned, nothing needs it any more.
    while await new.engine.prune(older_than=0.0, keep=None, limit=1_000):
        pass
    assert (await rotate_encryption(new)).complete
    job = await last.tasks["steps"].enqueue(3)
    assert job.sealed_with == "k2"


async def test_what_still_needs_a_key(url: str, make: Make, worker: Worker) -> None:
    old = make(url, payload_limit=2_000)

    @old.task("large", encrypt=True, retries=0)
    async def large(ctx: headrace.Context, fails: bool) -> int:
        kept: list[str] = await ctx.stage("long", _many)
        if fails:
            raise ValueError("sealed")
        return len(kept)

    await old.tasks["pay"].options(delay=3600).enqueue(card="later")
    await large.enqueue(fails=True)
    await old.tasks["plain"].enqueue("nothing sealed")
    await old.put_schedule("nightly", "0 3 * * *", "pay", params={"card": "4111"})
    bad = message(params={"amount": "many"})
    await DeadLetters(old).keep("kafka", MessageParser(old).parse([bad]).refused)
    await worker(old).run_until_idle()
    seen: list[int] = []
    new = make(url, BOTH)
    found = await rotate_encryption(new, on_progress=seen.append)
    assert (found.jobs, found.resealed, found.complete) == (3, 2, False)
    assert seen[-1] == 3
    assert used(found) == {"k2": (0, 0, 2), "k1": (1, 1, 0)}
    assert [each.seals for each in found.keys] == [True, False]
    # Records are sealed with the new key now, and open as before.
    assert (await new.trigger_schedule("nightly")).args == {"card": "4111"}
    assert (await rotate_encryption(new)).resealed == 0
    with pytest.raises(headrace.InvalidArguments, match="amount"):
        await make(url, f"k2:{K2}").replay_dead_letter("orders:0:7")
    # Somebody who has not the old key is told that it is missing.
    lost = await rotate_encryption(make(url, f"k2:{K2}"))
    assert [(each.key, each.known) for each in lost.keys] == [("k2", True), ("k1", False)]


def _many() -> list[str]:
    return ["x" * 50] * 100


async def test_when_a_key_can_be_dropped(here: str, make: Make, worker: Worker) -> None:
    old = make(here)
    await old.tasks["pay"].enqueue(card="4111")
    await worker(old).run_until_idle()
    [_, k1] = (await rotate_encryption(make(here, BOTH, history_seconds=3_600.0))).keys
    assert k1.until is not None
    assert timedelta(minutes=59) < k1.until - datetime.now(UTC) <= timedelta(hours=1)
    await old.tasks["pay"].enqueue(card="waits")
    [_, k1] = (await rotate_encryption(make(here, BOTH))).keys
    assert k1.until is None


async def test_it_needs_keys(here: str, make: Make) -> None:
    with pytest.raises(headrace.MissingEncryptionKey, match="the new one first"):
        await rotate_encryption(make(here, None))


def run(*arguments: str, keys: str, url: str) -> subprocess.CompletedProcess[str]:
    environment = {"HEADRACE_ENCRYPTION_KEYS": keys, "HEADRACE_URL": url}
    inherited = {name: text for name, text in os.environ.items() if "HEADRACE" not in name}
    return subprocess.run(
        [HEADRACE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=inherited | environment,
    )


async def test_the_command(here: str, make: Make) -> None:
    app = make(here)
    job = await app.tasks["pay"].enqueue(card="4111")
    await app.close()
    done = await asyncio.to_thread(run, "keys", "rotate-encryption", "--json", keys=BOTH, url=here)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["complete"] is False
    assert [each["key"] for each in found["keys"]] == ["k2", "k1"]
    shown = await asyncio.to_thread(run, "keys", "rotate-encryption", keys=BOTH, url=here)
    assert "when its unfinished jobs are pruned" in shown.stdout
    assert "Looked at 1 job;" in shown.stderr
    done = await asyncio.to_thread(run, "keys", "rotate-encryption", keys=f"k1:{K1}", url=here)
    assert done.returncode == 0
    refused = await asyncio.to_thread(run, "keys", "rotate-encryption", keys="", url=here)
    assert refused.returncode == 1
    assert "no encryption keys" in refused.stderr
    # What is sealed is shown only where the settings say so.
    shown = await asyncio.to_thread(run, "jobs", "show", job.id, keys=BOTH, url=here)
    assert '"key": "k1"' in shown.stdout
    assert "4111" not in shown.stdout
