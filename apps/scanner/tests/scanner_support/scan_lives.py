"""A worker of scans with many lives: each is killed at a point of a run that is chosen before it
begins, and the next begins at once.

Run as `python -m scanner_support.scan_lives URL KILLS FIRST`. Each life is a fork of this process.
After each death the tables are looked at: what is half stored is told. The last life goes on until
nothing is left to do. What was done is in the journal; how the lives ended is printed as JSON.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import structs
from tests.crash import journal
from tests.crash.journal import Line

import headrace
from headrace_scanner.reading import readers
from headrace_scanner.scanning.steps import Steps
from headrace_scanner.service import ScannerService
from headrace_scanner.store import scans
from headrace_scanner.store.scans import ScanRepository

# Where a life may end: around each row, each request, the commit of what changed, and the outcome.
POINTS = (
    "begun",
    "loaded",
    "a product is read",
    "a product is written",
    "in comparing",
    "before the commit",
    "after the commit",
    "the report is stored",
    "completed",
    "before the outcome",
    "after the outcome",
)
SLOTS = 2
# A life that has not reached its point within so many seconds is a mistake of the test.
LONGEST = 300.0
STORED = sa.text(
    """
    SELECT s.scan_id, s.status, s.written, s.products, s.report,
           (SELECT count(*) FROM observations o WHERE o.scan_id = s.scan_id),
           (SELECT count(*) FROM changes c WHERE c.scan_id = s.scan_id)
    FROM scans s
    """
)


class Fate:
    """Where this life ends."""

    def __init__(self) -> None:
        self.point = ""

    def reach(self, point: str) -> None:
        """Die here, if this is the point."""
        if point == self.point:
            journal.write(Line(event="died", stage=point))
            os.kill(os.getpid(), signal.SIGKILL)


fate = Fate()


def make_app(url: str) -> tuple[headrace.App, ScannerService]:
    """Return an App with the bundle, whose steps may be killed as often as it takes."""
    app = headrace.App(url, bundles=["scanner"], lease_seconds=30)
    retry = headrace.RetryPolicy(retries=10_000, base=0.0)
    for name, task in app.tasks.items():
        if name.startswith("scanner."):
            task.policy = structs.replace(task.policy, retry=retry)
            task.max_attempts = retry.max_attempts
    loaded = app.bundles.find("scanner")
    assert loaded is not None, app.bundles.failures
    return app, ScannerService.of(loaded.setup)


def after(owner: Any, name: str, then: Any) -> None:
    """Call something after a coroutine, with its arguments."""
    method = getattr(owner, name)

    @functools.wraps(method)
    async def watched(*args: Any, **options: Any) -> Any:
        result = await method(*args, **options)
        then(*args, **options)
        return result

    setattr(owner, name, watched)


def watch(app: headrace.App) -> None:
    """Put points of death into the steps, the transaction and the outcome."""
    after(ScanRepository, "begin", lambda *_: fate.reach("begun"))
    after(ScanRepository, "loaded", lambda *_: fate.reach("loaded"))
    after(readers._HttpProducts, "read", lambda *_: fate.reach("a product is read"))
    after(ScanRepository, "observe", observed)
    after(ScanRepository, "compared", lambda *_: fate.reach("in comparing"))
    after(scans, "compared_in", lambda *_: fate.reach("before the commit"))
    after(ScanRepository, "write", lambda *_: fate.reach("after the commit"))
    after(Steps, "_put_report", lambda *_: fate.reach("the report is stored"))
    after(ScanRepository, "complete", lambda *_: fate.reach("completed"))
    exchange = app.engine.exchange

    async def watched_exchange(settlements: Sequence[Any], **options: Any) -> Any:
        steps = any(each.follow for each in settlements)
        if steps:
            fate.reach("before the outcome")
        answer = await exchange(settlements, **options)
        if steps:
            fate.reach("after the outcome")
        return answer

    setattr(app.engine, "exchange", watched_exchange)  # noqa: B010 - of this process


def observed(_: Any, run: str, seen: Any, attempt: Any) -> None:
    journal.write(Line(event="observed", job=run, stage=seen.product_id, token=attempt.token))
    fate.reach("a product is written")


async def live(url: str) -> None:
    """Work until nothing is left to do."""
    app, _ = make_app(url)
    async with app:
        watch(app)
        worker = headrace.JobOrchestrator(app, name="steady", max_workers=SLOTS)
        await worker.start()
        while True:
            queues = await app.engine.queues()
            if not any(q.scheduled + q.waiting + q.ready + q.running for q in queues):
                break
            await asyncio.sleep(0.05)
        await worker.stop()


def begin(url: str, point: str) -> int:
    """Begin a life; return its process id."""
    child = os.fork()
    if child:
        return child
    logging.disable(logging.CRITICAL)
    fate.point = point
    code = 1
    try:
        asyncio.run(live(url))
        code = 0
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Return how a life ended."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


async def half_stored(url: str) -> list[str]:
    """Return the scans of which not all is there, or something that should not be."""
    _, service = make_app(url)
    try:
        async with service.setup.engine().connect() as connection:
            rows = (await connection.execute(STORED)).all()
    finally:
        await service.setup.close()
    wrong = []
    for scan_id, status, written, products, report, seen, changes in rows:
        # Each product has one change, and all are written at once.
        good = changes == (products if written else 0) and (not written or seen == products)
        if status == "completed":
            good = good and written and report is not None
        if not good:
            wrong.append(f"{scan_id}: {status}, {written}, {products}, {seen}, {changes}")
    return wrong


def main() -> None:
    """All lives, one after the other."""
    url, kills, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(kills):
        point = POINTS[(first + number) % len(POINTS)]
        status = ended(begin(url, point))
        killed = os.WIFSIGNALED(status) if status >= 0 else False
        ends["killed" if killed else f"life {number} ({point}) ended: {status}"] += 1
        wrong += asyncio.run(half_stored(url))
    status = ended(begin(url, ""))
    ends["lived on"] += status == 0
    wrong += asyncio.run(half_stored(url))
    print(msgspec.json.encode({"ends": ends, "half_stored": wrong}).decode())


if __name__ == "__main__":
    main()
