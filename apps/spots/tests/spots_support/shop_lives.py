"""A worker of shops with many lives: each is killed at a point of the analysis that is chosen
before it begins, and the next begins at once.

Run as `python -m spots_support.shop_lives URL KILLS FIRST`. Each life is a fork of this process,
which has loaded the models once. After each death the tables are looked at: what is half stored is
told. The last life goes on until nothing is left to do. What was done is in the journal; how the
lives ended is printed as JSON.
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
from urllib.parse import urlsplit

import msgspec
import sqlalchemy as sa
from msgspec import structs
from tests.crash import journal
from tests.crash.journal import Line

import headrace
from headrace.bundles import Setup
from headrace_spots import analysis, pipeline
from headrace_spots.bundle import bundle
from headrace_spots.crawling.fetch import Fetcher
from headrace_spots.crawling.kept import KeptPages
from headrace_spots.service import TASK
from headrace_spots.steps import Steps
from headrace_spots.store import repository
from headrace_spots.store.repository import ShopRepository

# Where a life may end: each status as the row shows it, the middle of each stage, and around the
# two steps that make it true: the commit of the tables and the outcome of the job.
POINTS = (
    "begun",
    "crawling",
    "a page is fetched",
    "a page is kept",
    "in crawling",
    "crawled",
    "parsing",
    "in parsing",
    "parsed",
    "analyzing",
    "in analyzing",
    "embedding",
    "before the commit",
    "after the commit",
    "in embedding",
    "completed",
    "before the outcome",
    "after the outcome",
)
SLOTS = 3
# A life that has not reached its point within so many seconds is a mistake of the test.
LONGEST = 120.0
STORED = sa.text(
    """
    SELECT s.run_id, s.status, s.reviews,
           (SELECT count(*) FROM reviews r WHERE r.run_id = s.run_id),
           (SELECT count(*) FROM embeddings e WHERE e.run_id = s.run_id),
           (SELECT count(*) FROM analysis a WHERE a.run_id = s.run_id)
    FROM store_snapshots s
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


def make_app(url: str) -> tuple[headrace.App, Setup]:
    """Return an App with the bundle, whose shops may be killed as often as their jobs allow."""
    app = headrace.App(url, lease_seconds=30)
    setup = app.load_bundle(bundle, allow_private=True, delay_seconds=0.0)
    task = app.tasks[TASK]
    retry = headrace.RetryPolicy(retries=10_000, base=0.0)
    task.policy, task.max_attempts = structs.replace(task.policy, retry=retry), retry.max_attempts
    return app, setup


def after(owner: Any, name: str, then: Any) -> None:
    """Call something after a coroutine method, with its arguments."""
    method = getattr(owner, name)

    @functools.wraps(method)
    async def watched(*args: Any, **options: Any) -> Any:
        result = await method(*args, **options)
        then(*args, **options)
        return result

    setattr(owner, name, watched)


def watch(app: headrace.App) -> None:
    """Put points of death into the pipeline, the transaction and the outcome."""
    after(ShopRepository, "begin", lambda *_: fate.reach("begun"))
    after(ShopRepository, "show", lambda _, run_id, token, status, *more: fate.reach(str(status)))
    after(Fetcher, "get", lambda *_, **__: fate.reach("a page is fetched"))
    after(KeptPages, "put", kept)
    for stage, step in (
        ("crawling", "crawl"),
        ("parsing", "parse"),
        ("analyzing", "analyse"),
        ("embedding", "embed"),
    ):
        after(Steps, step, lambda *_, stage=stage: fate.reach(f"in {stage}"))
    after(repository, "insert_rows", lambda *_: fate.reach("before the commit"))
    after(ShopRepository, "complete", stored)
    after(pipeline.Attempt, "finished", lambda *_: fate.reach("completed"))
    exchange = app.engine.exchange

    async def watched_exchange(settlements: Sequence[Any], **options: Any) -> Any:
        shops = any(each.follow for each in settlements)
        if shops:
            fate.reach("before the outcome")
        answer = await exchange(settlements, **options)
        if shops:
            fate.reach("after the outcome")
        return answer

    setattr(app.engine, "exchange", watched_exchange)  # noqa: B010 - of this process


def kept(pages: Any, fetched: Any, **_: Any) -> None:
    parts = urlsplit(fetched.url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    journal.write(Line(event="kept", job=pages._ctx.job_id, stage=path))
    fate.reach("a page is kept")


def stored(_: Any, analysed: Any, token: int) -> None:
    journal.write(Line(event="stored", job=analysed.run_id, token=token))
    fate.reach("after the commit")


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
    """Return the runs of which not all is there, or something that should not be."""
    _, setup = make_app(url)
    try:
        async with setup.engine().connect() as connection:
            rows = (await connection.execute(STORED)).all()
    finally:
        await setup.close()
    wrong = []
    for run_id, status, reviews, *found in rows:
        wanted = [reviews, reviews, 1] if status == "completed" else [0, 0, 0]
        if found != wanted or (status == "completed" and not reviews):
            wrong.append(f"{run_id}: {status}, {reviews}, {found}")
    return wrong


def warm_up() -> None:
    """Load what every life would load."""
    analysis.Sentiment.load().of(["warm coffee", "커피가 좋아요"])


def main() -> None:
    """All lives, one after the other."""
    url, kills, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warm_up()
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
