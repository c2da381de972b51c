"""Jobs of every kind on SQLite, by whichever Python runs this.

Run by test_other_pythons.py in an environment of its own: it imports nothing from the tests.
"""

import asyncio
import sys

import headrace

app = headrace.App("sqlite:///jobs.db", app="first_jobs")


async def collect(order: int) -> list[int]:
    """Return what belongs to an order."""
    return [order, order]


@app.task(retry=headrace.RetryPolicy(retries=2, base=0.01), lane="order:{order}")
async def ship(ctx: headrace.Context, order: int) -> int:
    """Take two attempts, and collect in the first alone."""
    items = await ctx.stage("collecting", collect, order)
    if ctx.attempt == 1:
        raise ConnectionError("no van")
    return len(items)


@app.task
def in_a_thread(number: int) -> int:
    """Return twice the number."""
    return 2 * number


@app.task(isolate="process")
def in_a_process(number: int) -> int:
    """Return three times the number."""
    return 3 * number


async def main() -> None:
    """Run all of them, and cancel and retry one."""
    async with app:
        jobs = await app.enqueue_many(
            [
                *(ship.job(order=1) for _ in range(2)),
                in_a_thread.job(number=2),
                in_a_process.job(number=2),
            ]
        )
        later = await in_a_thread.options(delay=3600).enqueue(number=1)
        await app.cancel(later.id)
        await app.retry(later.id)
        worker = headrace.JobOrchestrator(app)
        await worker.start()
        found = [await app.result(job.id, timeout=60) for job in (*jobs, later)]
        await worker.stop()
        page = await app.list(headrace.JobFilter(statuses=(headrace.Status.COMPLETED,)))
        if (found, len(page.jobs)) != ([2, 2, 4, 6, 2], 5):
            raise SystemExit(f"not what was asked for: {found}, {page}")
    sys.stdout.write("it works\n")


if __name__ == "__main__":
    asyncio.run(main())
