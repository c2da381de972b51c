"""Run a measurement.

python -m headrace_ingest.bench documents --count 60    beside a loop with the same parts
python -m headrace_ingest.bench memory                  a PDF of 200 MB, and 100 at once
python -m headrace_ingest.bench hundred --url URL       100 documents at once: time, connections
python -m headrace_ingest.bench search --help           the latency of the search
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headrace_ingest.bench import search
from headrace_ingest.bench.documents import LOOP, WORKER, in_turns, measured, write_files
from headrace_ingest.bench.hundred import COUNT, measure_hundred
from headrace_ingest.bench.memory import loads


def documents(count: int, runs: int) -> None:
    """Print documents a second of both ways, and their ratio."""
    best = {LOOP: 0.0, WORKER: 0.0}
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        paths = write_files(Path(folder), count)
        for number, way in in_turns(runs):
            found = measured(way, paths)
            rate = count / found.seconds
            best[way] = max(best[way], rate)
            tell(f"run {number + 1}, {way}: {rate:.2f} documents/s, {found.megabytes:.0f} MB")
    share = best[WORKER] / best[LOOP]
    print(f"worker {best[WORKER]:.2f}, loop {best[LOOP]:.2f} documents/s: {share:.0%}")


def memory() -> None:
    """Print the most memory of a worker with one document, a large PDF, and a hundred at once."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        for name, paths in loads(Path(folder)):
            found = measured(WORKER, paths)
            tell(f"{name}: at most {found.megabytes:.0f} MB in all, {found.seconds:.1f} s")


def hundred(url: str | None) -> None:
    """Print how long a hundred documents took, and every connection of the worker."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        store = url or f"sqlite:///{folder}/jobs.db"
        found = asyncio.run(measure_hundred(store, Path(folder)))
    tell(
        f"{COUNT} documents at once: {found.mean:.2f} s from handed in to completed on average "
        f"({found.processing:.2f} s of it in processing), the last after {found.longest:.2f} s"
    )
    for name, most in sorted(found.connections.items()):
        print(f"at most {most} connections as {name!r}")


def tell(text: str) -> None:
    """Print with how busy the machine is."""
    print(f"{text}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run a measurement; return the exit code."""
    if arguments[:1] == ["search"]:
        return search.main(arguments)
    parser = argparse.ArgumentParser(
        prog="python -m headrace_ingest.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["documents", "memory", "hundred", "search"])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--url", help="an empty store for `hundred` (default: a new SQLite file)")
    chosen = parser.parse_args(arguments)
    match chosen.what:
        case "memory":
            memory()
        case "hundred":
            hundred(chosen.url)
        case _:
            documents(chosen.count, chosen.runs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
