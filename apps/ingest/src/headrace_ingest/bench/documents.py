"""Measure how many documents a second are processed, and how much memory that takes.

    python -m headrace_ingest.bench documents --count 60    beside a loop with the same parts
    python -m headrace_ingest.bench memory                  a PDF of 200 MB, and 100 at once

The plain loop has as many slots as the worker, and its parts: it reads the files, cuts, masks,
embeds and stores them, without a queue, a status row for each stage, or sealed originals. They take
turns, each in a process of its own; the best of each counts. Documents are made of the
descriptions of installed packages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

import headrace
from headrace.bundles import Setup
from headrace_ingest.bench.files import large_pdf
from headrace_ingest.bundle import bundle
from headrace_ingest.chunking import split
from headrace_ingest.documents import Documents
from headrace_ingest.embedding import embed_chunks
from headrace_ingest.service import IngestService
from headrace_ingest.store.records import NewDocument, Processed
from headrace_ingest.store.sources import FileSource

SLOTS = 10
CHARACTERS = 4000
LARGE_MEBIBYTES = 200
WAYS = ("loop", "worker")
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
        return await (by_loop if way == "loop" else by_worker)(setup, paths)


def measured(way: str, paths: Sequence[Path]) -> tuple[float, float]:
    """Run a way in a process of its own on a new store; return its seconds, and the most memory
    that it and its processes had, in MB.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        program = [sys.executable, "-m", __spec__.name, way, folder]
        process = subprocess.Popen(  # noqa: S603 - this module
            [*program, *map(str, paths)],
            stdout=subprocess.PIPE,
            env={**os.environ, "HEADRACE_URL": f"sqlite:///{folder}/jobs.db"},
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
        return float(json.loads(output)), most


def _memory(pid: int) -> float:
    """Return the memory of a process and of those that it has started, in MB."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return float(sum(each.memory_info().rss for each in family)) / 1e6
    except psutil.NoSuchProcess:
        return 0.0


def load() -> str:
    """Return how busy the machine is."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def measure_documents(count: int, runs: int) -> None:
    """Print documents a second of both ways, and their ratio."""
    best = dict.fromkeys(WAYS, 0.0)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        paths = write_files(Path(folder), count)
        for number in range(runs):
            # The first of a pair may find the machine busier than the second.
            for way in WAYS if number % 2 else reversed(WAYS):
                seconds, memory = measured(way, paths)
                best[way] = max(best[way], count / seconds)
                rate = f"{count / seconds:.2f} documents/s"
                print(f"run {number + 1}, {way}: {rate}, {memory:.0f} MB, {load()}", flush=True)
    share = best["worker"] / best["loop"]
    print(f"worker {best['worker']:.2f}, loop {best['loop']:.2f} documents/s: {share:.0%}")


def measure_memory() -> None:
    """Print the most memory of a worker with a large PDF, with one document, and with a hundred."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        large = Path(folder) / "large.pdf"
        large_pdf(large, LARGE_MEBIBYTES)
        hundred = write_files(Path(folder), 100)
        for name, paths in (
            ("one document", hundred[:1]),
            (f"a PDF of {large.stat().st_size / 2**20:.0f} MiB", [large]),
            ("100 documents at once", hundred),
        ):
            seconds, memory = measured("worker", paths)
            print(f"{name}: at most {memory:.0f} MB in all, {seconds:.1f} s, {load()}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run a measurement; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_ingest.bench")
    parser.add_argument("what", choices=["documents", "memory"])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--runs", type=int, default=4)
    chosen = parser.parse_args(arguments)
    if chosen.what == "memory":
        measure_memory()
    else:
        measure_documents(chosen.count, chosen.runs)
    return 0


if __name__ == "__main__":
    way, folder, *names = sys.argv[1:]
    files = [Path(each) for each in names]
    print(json.dumps(asyncio.run(run(way, Path(folder), files, os.environ["HEADRACE_URL"]))))
