"""A worker of documents with many lives: each is killed at a point of the pipeline that is chosen
before it begins, and the next begins at once.

Run as `python -m ingest_support.document_lives URL KILLS FIRST`. Each life is a fork of this
process, and starts processes of its own. After each death the tables are looked at: what
is half stored is told. The last life goes on until nothing is left to do. What was done is in the
journal; how the lives ended is printed as JSON.
"""

from __future__ import annotations

import asyncio
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
from headrace.bundles import Setup
from headrace_ingest import pipeline
from headrace_ingest.bundle import bundle
from headrace_ingest.service import TASK
from headrace_ingest.store import repository
from headrace_ingest.store.repository import Repository

STAGES = ("parsing", "chunking", "masking", "embedding", "storing")
# Where a life may end: each stage as it is shown, the middle of each, and around the two
# steps that make it true: the commit of the tables and the outcome of the job.
POINTS = (
    "parsing",
    "in parsing",
    "parsed",
    "chunking",
    "in chunking",
    "chunked",
    "masking",
    "in masking",
    "masked",
    "embedding",
    "in embedding",
    "embedded",
    "storing",
    "before the commit",
    "after the commit",
    "completed",
    "before the outcome",
    "after the outcome",
)
# What an attempt calls for the work of each stage; storing is a call of the repository.
METHODS = {
    "_parse": "parsing",
    "_cut": "chunking",
    "_mask": "masking",
    "_embed_batch": "embedding",
}
# What is shown once the result of a stage is recorded.
FINISHED = {
    "parsed": "parsing",
    "chunked": "chunking",
    "masked": "masking",
    "embedded": "embedding",
}
SLOTS = 3
# A life that has not reached its point within so many seconds is a mistake of the test.
LONGEST = 120.0
HALF_STORED = sa.text(
    """
    SELECT d.document_id, d.status, d.chunks, count(c.chunk_id) AS found,
           count(DISTINCT e.chunk_id) AS embedded,
           (SELECT count(*) FROM document_work w WHERE w.document_id = d.document_id) AS work
    FROM documents d
    LEFT JOIN document_chunks c ON c.document_id = d.document_id
    LEFT JOIN (SELECT DISTINCT chunk_id FROM embeddings) e ON e.chunk_id = c.chunk_id
    GROUP BY d.document_id, d.status, d.chunks
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
    """Return an App with the bundle, whose documents may be killed as often as it takes."""
    app = headrace.App(url, lease_seconds=30)
    setup = app.load_bundle(bundle)
    task = app.tasks[TASK]
    retry = headrace.RetryPolicy(retries=10_000, base=0.0)
    task.policy, task.max_attempts = structs.replace(task.policy, retry=retry), retry.max_attempts
    return app, setup


def watch(app: headrace.App) -> None:
    """Put points of death into the pipeline, the transaction and the outcome."""
    attempt: Any = pipeline._Attempt
    show, finished = attempt._show, attempt._finished
    store, count, exchange = Repository.store, repository.count_changes, app.engine.exchange

    def watched_show(self: Any, name: str, progress: int) -> None:
        show(self, name, progress)
        if name in FINISHED:
            tell("finished", self.document_id, self.ctx.token, FINISHED[name])
        fate.reach(name)

    def watched(method: str, stage: str) -> None:
        """Tell what is really done, whoever calls for it; it may end before it is recorded."""
        function = getattr(attempt, method)

        async def step(self: Any, *arguments: Any) -> Any:
            # A batch is named by its first chunk.
            part = f"{stage} {arguments[0]}" if method == "_embed_batch" else stage
            tell("begun", self.document_id, self.ctx.token, part)
            result = await function(self, *arguments)
            if method == "_embed_batch":
                tell("finished", self.document_id, self.ctx.token, part)
            fate.reach(f"in {stage}")
            return result

        setattr(attempt, method, step)

    async def watched_finished(self: Any, *arguments: Any) -> Any:
        result = await finished(self, *arguments)
        fate.reach("completed")
        return result

    async def watched_store(self: Any, processed: Any, *arguments: Any) -> Any:
        tell("begun", processed.document_id, arguments[-1], "storing")
        stored = await store(self, processed, *arguments)
        tell("stored", processed.document_id, arguments[-1], "storing")
        fate.reach("after the commit")
        return stored

    async def watched_count(*arguments: Any, deleted: bool) -> None:
        await count(*arguments, deleted=deleted)
        fate.reach("before the commit")

    async def watched_exchange(settlements: Sequence[Any], **options: Any) -> Any:
        documents = any(each.follow for each in settlements)
        if documents:
            fate.reach("before the outcome")
        answer = await exchange(settlements, **options)
        if documents:
            fate.reach("after the outcome")
        return answer

    attempt._show, attempt._finished = watched_show, watched_finished
    for method, stage in METHODS.items():
        watched(method, stage)
    setattr(Repository, "store", watched_store)  # noqa: B010 - of this process
    setattr(repository, "count_changes", watched_count)  # noqa: B010
    setattr(app.engine, "exchange", watched_exchange)  # noqa: B010


def tell(event: str, job: str, token: int, stage: str) -> None:
    journal.write(Line(event=event, job=job, token=token, stage=stage))


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
    """Return the documents of which not all is there, or something that should not be."""
    _, setup = make_app(url)
    try:
        async with setup.engine().connect() as connection:
            rows = (await connection.execute(HALF_STORED)).all()
    finally:
        await setup.close()
    wrong = []
    for document_id, status, chunks, found, embedded, work in rows:
        completed = status == "completed"
        wanted = chunks if completed else 0
        if (found, embedded) != (wanted, wanted) or (completed and (not chunks or work)):
            wrong.append(f"{document_id}: {status}, {chunks}, {found}, {embedded}, {work}")
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
