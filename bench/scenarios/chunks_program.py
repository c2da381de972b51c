"""The program of the scenario `chunks`: a task that inserts one row, and one that inserts many.

Rows go into a real table, durably: of the database that has the jobs on PostgreSQL, over as many
connections as there are slots; of a file beside them on SQLite and Redis, which one thread writes.
What is compared is a commit for each row with a commit for fifty.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import asyncpg

import headrace
from bench.recorder import Ticks
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.orchestrator.worker_program import run_worker

BATCH = 1_000
SIZE = 50
TEXT = "x" * 100
TABLE = "CREATE TABLE reading (number BIGINT PRIMARY KEY, text TEXT NOT NULL)"

T = TypeVar("T")

SLOTS = int(os.environ.get("BENCH_SLOTS", "10"))

app = headrace.App(os.environ.get("BENCH_URL"), max_workers=SLOTS)


@functools.cache
def _ticks() -> Ticks:
    return Ticks(os.environ["BENCH_RECORD"])


class SqliteTable:
    """A file with write-ahead log, synced at every commit, written by one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(1)
        self._connection: sqlite3.Connection | None = None

    async def create(self) -> None:
        await self._do(lambda: self._open().execute(TABLE))

    async def insert(self, rows: Sequence[tuple[int, str]]) -> None:
        def write() -> None:
            with self._open() as connection:  # commits
                connection.executemany("INSERT INTO reading VALUES (?, ?)", rows)

        await self._do(write)

    async def count(self) -> int:
        def read() -> int:
            [(found,)] = self._open().execute("SELECT count(*) FROM reading")
            return int(found)

        return await self._do(read)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self.path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        return self._connection

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class PostgresTable:
    """A table beside the jobs, and a connection to it for each slot."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    async def create(self) -> None:
        await (await self._open()).execute(TABLE)

    async def insert(self, rows: Sequence[tuple[int, str]]) -> None:
        numbers, texts = zip(*rows, strict=True)
        await (await self._open()).execute(
            "INSERT INTO reading SELECT * FROM unnest($1::bigint[], $2::text[])", numbers, texts
        )

    async def count(self) -> int:
        return int(await (await self._open()).fetchval("SELECT count(*) FROM reading"))

    async def _open(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(self.url, min_size=1, max_size=SLOTS)
        return self._pool


@functools.cache
def _table() -> SqliteTable | PostgresTable:
    url = os.environ["BENCH_URL"]
    if url.startswith("postgres"):
        return PostgresTable(url)
    return SqliteTable(Path(os.environ["BENCH_RECORD"]).with_name("readings.db"))


@dataclass
class Reading:
    number: int
    text: str


@app.task
async def one(number: int, text: str) -> None:
    """Insert one row."""
    await _table().insert([(number, text)])
    _ticks().start()


@app.task(chunk=SIZE, chunk_wait=0.2)
async def many(chunk: headrace.Chunk[Reading]) -> None:
    """Insert the rows of up to fifty jobs."""
    await _table().insert([(job.args.number, job.args.text) for job in chunk])
    for _ in chunk:
        _ticks().start()


async def fill(task: str, count: int) -> dict[str, int]:
    """Make the table, and store jobs."""
    await _table().create()
    args = b'{"number":%d,"text":"' + TEXT.encode() + b'"}'
    async with app:
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            await app.engine.insert(
                [NewJob(id=new_id(), task=task, args=args % n) for n in numbers]
            )
    return {"count": count}


async def rows() -> dict[str, int]:
    """How many rows there are."""
    return {"count": await _table().count()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["fill", "rows", "worker"])
    parser.add_argument("--task", default="one")
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    match options.command:
        case "fill":
            print(json.dumps(asyncio.run(fill(options.task, options.count))), flush=True)
        case "rows":
            print(json.dumps(asyncio.run(rows())), flush=True)
        case _:
            sys.exit(asyncio.run(run_worker(headrace.JobOrchestrator(app))))


if __name__ == "__main__":
    main()
