"""How long it takes to group 5,000 failures, and to say what is wrong, in a large history.

python -m bench.errors sqlite:////tmp/errors.db --finished 100000
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import headrace
from headrace.model.ids import new_id
from headrace.model.job import JobFilter, NewJob
from headrace.model.outcome import Completed, Failed, Failure, Outcome, Settlement
from headrace.model.worker import WorkerInfo
from headrace.monitor.errors import error_groups, grouped
from headrace.monitor.findings.summary import Summaries

BATCH = 500
ROUNDS = 20


async def fill(app: headrace.App, outcomes: list[Outcome]) -> None:
    """Store jobs with these outcomes."""
    worker = WorkerInfo(id=new_id(), name="bench", host="here", pid=1, version="0")
    await app.engine.register(worker, 3_600.0)
    for start in range(0, len(outcomes), BATCH):
        some = outcomes[start : start + BATCH]
        jobs = [NewJob(id=new_id(), task=f"task{start // BATCH % 2}") for _ in some]
        await app.engine.insert(jobs)
        taken = (await app.engine.exchange([], worker_id=worker.id, limit=len(some))).jobs
        pairs = zip(taken, some, strict=True)
        await app.engine.exchange([Settlement(job.id, job.token, each) for job, each in pairs])


async def timed(name: str, call: Callable[[], Awaitable[object]]) -> None:
    """Print the median and the longest of some rounds."""
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await call()
        took.append(1_000 * (time.perf_counter() - began))
    print(f"{name}: median {statistics.median(took):.1f} ms, longest {max(took):.1f} ms")


async def main() -> None:
    """Fill the store, then measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--finished", type=int, default=100_000)
    given = parser.parse_args()
    async with headrace.App(given.url) as app:
        await fill(app, [Completed(b"1")] * given.finished)
        kinds = ("ConnectionError", "KeyError", "ValueError")
        await fill(
            app,
            [Failed(Failure(kinds[n % 3], f"order {n} of user {n % 97}")) for n in range(5_000)],
        )
        await timed("5,000 failures in groups", lambda: error_groups(app.engine, JobFilter()))
        jobs = []
        cursor = None
        wanted = JobFilter(statuses=(headrace.Status.FAILED,))
        while len(jobs) < 5_000:
            page = await app.engine.list_jobs(wanted, cursor=cursor, limit=1_000, brief=True)
            jobs += page.jobs
            cursor = page.cursor
        began = time.thread_time()
        grouped(jobs, complete=True)
        took = 1_000 * (time.thread_time() - began)
        print(f"of which grouping: {took:.1f} ms of processor time, in a thread")
        await timed("a summary, nothing remembered", lambda: Summaries(app).get())


if __name__ == "__main__":
    asyncio.run(main())
