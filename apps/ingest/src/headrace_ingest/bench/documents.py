"""Process documents by a worker or by a plain loop, and tell how long it took and how much memory.

The plain loop has as many slots as the worker, and its parts: it reads the files, cuts, masks,
embeds and stores them, without a queue, a status row for each stage, or sealed originals. They take
turns, each in a process of its own; the best of each counts. Documents are made of the
descriptions of installed packages.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil  # type: ignore[import-untyped]

import headrace
from headrace.bundles import Setup
from headrace_ingest.bundle import bundle
from headrace_ingest.chunking import split
from headrace_ingest.documents import Documents
from headrace_ingest.embedding import embed_chunks
from headrace_ingest.service import IngestService
from headrace_ingest.store.records import NewDocument, Processed
from headrace_ingest.store.sources import FileSource

SLOTS = 10
CHARACTERS = 4000
WORKER, LOOP = "worker", "loop"
WARM_UP = "담당자: 김철수 과장"


def write_files(folder: Path, count: int) -> list[Path]:
    """Write so many documents of about ten chunks each."""
    texts = [str(each.metadata.get_payload()) for each in distributions()]  # type: ignore[attr-defined]
    text = " ".join(sorted(text for text in texts if len(text) > 1000))
    chance = np.random.default_rng(1)
    paths = []
    for number in range(count):
        start = int(chance.integers(len(text) - CHARACTERS))
        paths.append(folder / f"{number}.txt")
        paths[-1].write_text(text[start : start + CHARACTERS], encoding="utf-8")
    return paths


async def by_loop(setup: Setup, paths: Sequence[Path]) -> float:
    """Process files by a plain loop; return how many seconds it took."""
    service = IngestService(setup)
    await _warm_up(service)
    left = iter(enumerate(paths))
    began = time.perf_counter()

    async def slot() -> None:
        for number, path in left:
            content = path.read_bytes()
            parsed = await service.pool.parse(_whole(content), len(content), path.name)
            chunks = await asyncio.to_thread(split, parsed.text)
            masked = await service.masker.mask(parsed.text, chunks)
            texts = [chunk.text for chunk in masked.chunks]
            vectors = await embed_chunks(service.embedder, texts)
            name = str(number)
            document = NewDocument(document_id=name, name=path.name, path="/", sha256=name)
            await service.repository.begin(document, 1)
            model = service.embedder.name
            processed = Processed(document_id=name, characters=len(parsed.text), model=model)
            await service.repository.store(processed, masked.chunks, vectors, 1)

    await asyncio.gather(*(slot() for _ in range(SLOTS)))
    return time.perf_counter() - began


async def by_worker(setup: Setup, paths: Sequence[Path]) -> float:
    """Process files by a worker, which are all handed in before; return how long it took."""
    documents = Documents(IngestService(setup))
    worker = headrace.JobOrchestrator(setup.app, max_workers=SLOTS)
    for number in range(2):
        async with FileSource(f"{number} {WARM_UP}".encode()) as source:
            await documents.add(source, f"warm up {number}.txt")
    await worker.run_until_idle()
    for path in paths:
        async with FileSource(path) as source:
            await documents.add(source, path.name)
    began = time.perf_counter()
    await headrace.JobOrchestrator(setup.app, max_workers=SLOTS).run_until_idle()
    return time.perf_counter() - began


async def _warm_up(service: IngestService) -> None:
    """Load model and dictionary, and start the processes, which happens once in a worker."""
    content = WARM_UP.encode()
    both = (service.pool.parse(_whole(content), len(content), f"{n}.txt") for n in range(2))
    parsed, _ = await asyncio.gather(*both)
    await service.masker.mask(parsed.text, split(parsed.text))
    await service.embedder.batch_generate_embeddings([parsed.text])


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def run(way: str, folder: Path, paths: Sequence[Path], url: str) -> float:
    """Process files in one way."""
    app = headrace.App(url, artifacts=str(folder / "artifacts"))
    setup = app.load_bundle(bundle)
    async with app:
        return await (by_loop if way == LOOP else by_worker)(setup, paths)


class Measured(NamedTuple):
    """How many seconds documents took, and the most memory of all processes together, in MB."""

    seconds: float
    megabytes: float


def measured(way: str, paths: Sequence[Path], url: str | None = None) -> Measured:
    """Run a way in a process of its own. `url` is an empty store; None: a new file."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        program = [sys.executable, "-m", __spec__.name, way, folder]
        process = subprocess.Popen(  # noqa: S603 - this module
            [*program, *map(str, paths)],
            stdout=subprocess.PIPE,
            # With Redis the tables are in a file of the current folder.
            cwd=folder,
            env={**os.environ, "HEADRACE_URL": url or f"sqlite:///{folder}/jobs.db"},
        )
        most = 0.0

        def watch() -> None:
            nonlocal most
            while process.poll() is None:
                most = max(most, _memory(process.pid))
                time.sleep(0.1)

        watcher = threading.Thread(target=watch)
        watcher.start()
        output, _ = process.communicate()
        watcher.join()
        if process.returncode:
            raise RuntimeError(f"{way} ended with {process.returncode}")
        return Measured(float(json.loads(output)), most)


def in_turns(runs: int) -> Iterator[tuple[int, str]]:
    """Yield which way is next, with the number of its run. The first of a pair may find the machine
    busier than the second.
    """
    for number in range(runs):
        for way in (LOOP, WORKER) if number % 2 else (WORKER, LOOP):
            yield number, way


def _memory(pid: int) -> float:
    """Return the memory of a process and of those that it has started, in MB."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return float(sum(each.memory_info().rss for each in family)) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


if __name__ == "__main__":
    way, folder, *names = sys.argv[1:]
    files = [Path(each) for each in names]
    print(json.dumps(asyncio.run(run(way, Path(folder), files, os.environ["HEADRACE_URL"]))))
