"""Fills a store with finished and pending jobs, through the engine's own verbs."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator

import headrace
from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.outcome import Completed, Failed, Failure, Outcome, Settlement
from headrace.model.worker import WorkerInfo

BATCH = 1_000
CHUNK = 20_000
WORKERS = 4
LEASE_SECONDS = 600.0
QUEUES = ("default", "mail", "reports", "scans")
TASKS = ("invoice", "mail.send", "report.make", "scan", "thumbnail")
# One in so many fails. Of those that fail, one in so many has an error that is rare.
FAILS = 100
RARE = 100
ERRORS = ("ConnectionError", "ConnectionError", "ValueError")
RARE_ERROR = "LicenceExpired"


def job(number: int) -> NewJob:
    """The nth job."""
    return NewJob(
        id=new_id(),
        task=TASKS[number % len(TASKS)],
        queue=QUEUES[number % len(QUEUES)],
        args=b'{"customer":%d,"subject":"Invoice %d"}' % (number % 1_000, number),
    )


def outcome(number: int, fails: int = FAILS) -> Outcome:
    """How the nth job ends."""
    if number % fails:
        return Completed(b'{"sent":true}')
    failed = number // fails
    kind = ERRORS[failed % len(ERRORS)] if failed % RARE else RARE_ERROR
    return Failed(Failure(kind, f"cannot reach 10.0.0.{number % 250}:25"))


async def build(
    app: headrace.App, *, finished: int, pending: int, fails: int = FAILS
) -> dict[str, object]:
    """Store them, of which one in `fails` has failed. Answers the id of one of those, and how long
    it took.
    """
    async with app:
        began, failed, ends = time.perf_counter(), "", itertools.count()
        for first in range(0, finished, CHUNK):
            numbers = range(first, min(first + CHUNK, finished))
            await _insert(app.engine, numbers)
            share = len(numbers) // WORKERS + 1
            ended = await asyncio.gather(
                *(_work(app.engine, f"worker-{n}", share, ends, fails) for n in range(WORKERS))
            )
            failed = max([failed, *(each for each, _ in ended)])
            if sum(count for _, count in ended) != len(numbers):
                raise RuntimeError(f"{ended} of {len(numbers)} jobs were done")
        await _insert(app.engine, range(finished, finished + pending))
        return {"seconds": time.perf_counter() - began, "failed": failed}


async def _insert(engine: Engine, numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, BATCH):
        await engine.insert([job(n) for n in range(first, min(first + BATCH, numbers.stop))])


async def _work(
    engine: Engine, name: str, share: int, ends: Iterator[int], fails: int
) -> tuple[str, int]:
    """Work off a share of what waits. Answers the last job that failed, and how many it was."""
    worker = WorkerInfo(
        id=new_id(), name=name, host="bench", pid=os.getpid(),
        version=headrace.__version__, queues=QUEUES, tasks=TASKS,
    )  # fmt: skip
    await engine.register(worker, LEASE_SECONDS)
    done, failed, settlements = 0, "", list[Settlement]()
    while True:
        answer = await engine.exchange(
            settlements, worker_id=worker.id, queues=QUEUES, limit=min(BATCH, share - done)
        )
        if not answer.jobs:
            break
        done += len(answer.jobs)
        settlements = []
        for each in answer.jobs:
            ending = outcome(next(ends), fails)
            settlements.append(Settlement(each.id, each.token, ending))
            if isinstance(ending, Failed):
                failed = max(failed, each.id)
    await engine.retire(worker.id)
    return failed, done
