"""A hundred documents handed in at once to one worker: how long each takes, and how many
connections the worker has meanwhile, as the server counts them.

The worker is a process of its own that has processed one document before: it has loaded its
dictionary and its model.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg
import psutil  # type: ignore[import-untyped]

import headrace
from headrace import Job
from headrace_ingest.bench.documents import SLOTS, WARM_UP, write_files
from headrace_ingest.bundle import bundle
from headrace_ingest.documents import Documents
from headrace_ingest.service import IngestService
from headrace_ingest.store.sources import FileSource

COUNT = 100
LIMIT_SECONDS = 600.0
LOOK_SECONDS = 0.2
# Jobs are done in their order: to look at all of them would be work for the store.
LOOKED_AT = 10
CONNECTIONS = "SELECT application_name, client_port FROM pg_stat_activity WHERE client_port > 0"


class Hundred(NamedTuple):
    """Seconds from handed in to completed (mean, longest), the mean of those from the start of the
    job on, and the most connections of the worker by the name that they have on the server.
    """

    mean: float
    longest: float
    processing: float
    connections: dict[str, int]


async def measure_hundred(url: str, folder: Path, count: int = COUNT) -> Hundred:
    """Hand in documents to a worker on an empty store."""
    paths = write_files(folder, count)
    # Beside the jobs, or in a file that the worker shares.
    tables = {"url": f"sqlite:///{folder}/documents.db"} if url.startswith("redis") else {}
    app = headrace.App(url, artifacts=str(folder / "artifacts"))
    setup = app.load_bundle(bundle, **tables)
    async with app:
        documents = Documents(IngestService(setup))
        with _worker(url, folder, tables.get("url")) as process:
            async with FileSource(WARM_UP.encode()) as source:
                warm = await documents.add(source, "warm up.txt")
            await _Watch(app, url, process).completed([warm.job_id])
            async with AsyncExitStack() as stack:
                sources = [await stack.enter_async_context(FileSource(path)) for path in paths]
                files = [(each, path.name) for each, path in zip(sources, paths, strict=True)]
                accepted = await documents.add_many(files, "/")
            watch = _Watch(app, url, process)
            jobs = await watch.completed([each.job_id for each in accepted])
    ends = [each.completed_at or each.created_at for each in jobs]
    waited = [(end - each.created_at).total_seconds() for end, each in zip(ends, jobs, strict=True)]
    worked = [
        (end - (each.started_at or end)).total_seconds()
        for end, each in zip(ends, jobs, strict=True)
    ]
    return Hundred(fmean(waited), max(waited), fmean(worked), dict(watch.connections))


class _Watch:
    """Looks at jobs until they have completed, and at the connections of their worker."""

    def __init__(self, app: headrace.App, url: str, worker: subprocess.Popen[bytes]) -> None:
        self.connections: Counter[str] = Counter()
        self._app = app
        self._url = url
        self._worker = worker

    async def completed(self, job_ids: Sequence[str]) -> list[Job]:
        """Return the jobs when all have."""
        async with asyncio.timeout(LIMIT_SECONDS):
            left = set(job_ids)
            while left:
                if self._worker.poll() is not None:
                    raise RuntimeError(f"the worker ended with {self._worker.returncode}")
                for name, count in (await self._count()).items():
                    self.connections[name] = max(self.connections[name], count)
                for job in [await self._app.get(each) for each in sorted(left)[:LOOKED_AT]]:
                    if job.status.final:
                        left.discard(job.id)
                await asyncio.sleep(LOOK_SECONDS)
        jobs = [await self._app.get(each) for each in job_ids]
        if failed := [job for job in jobs if job.status != "completed"]:
            raise RuntimeError(f"{len(failed)} documents did not complete: {failed[0].error}")
        return jobs

    async def _count(self) -> Counter[str]:
        """Return how many connections the worker has now, by name."""
        if self._url.startswith("sqlite"):
            return Counter()
        named = await (_of_redis if self._url.startswith("redis") else _of_postgres)(self._url)
        ports = {
            each.laddr.port for each in psutil.Process(self._worker.pid).net_connections("tcp")
        }
        return Counter(name for port, name in named.items() if port in ports)


async def _of_postgres(url: str) -> dict[int, str]:
    """Return the name of each connection, by the port of the client."""
    connection = await asyncpg.connect(url.partition("?")[0])
    try:
        rows = await connection.fetch(CONNECTIONS)
    finally:
        await connection.close()
    return {row["client_port"]: row["application_name"] for row in rows}


async def _of_redis(url: str) -> dict[int, str]:
    """Return the name of each connection, by the port of the client."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 6379)
    writer.write(b"CLIENT LIST\r\n")
    size = int((await reader.readline())[1:])
    listed = (await reader.readexactly(size)).decode().splitlines()
    writer.close()
    await writer.wait_closed()
    found = [dict(part.partition("=")[::2] for part in line.split()) for line in listed]
    return {int(each["addr"].rpartition(":")[2]): each["name"] for each in found}


@contextmanager
def _worker(url: str, folder: Path, tables: str | None) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as people start it."""
    process = subprocess.Popen(  # noqa: S603 - this program
        [
            *(sys.executable, "-m", "headrace.cli", "worker"),
            *("--bundle", "ingest", "--max-workers", str(SLOTS)),
        ],
        cwd=folder,
        env={
            **os.environ,
            "HEADRACE_URL": url,
            "HEADRACE_ARTIFACTS": str(folder / "artifacts"),
            **({"HEADRACE_INGEST_URL": tables} if tables else {}),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
