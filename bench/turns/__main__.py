"""`python -m bench.turns OLD`: does a job cost more processor time than in an older version?

Both versions run with the packages of this environment, in turns, each in a process and on an empty
store of its own. Processor time is compared, not time: other load on the machine disturbs it less.
"""

from __future__ import annotations

import argparse
import compileall
import io
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.arena import ENGINES, ROOT, Arena

PROGRAM = "bench.turns.program"
WORKING_TREE = "."
# Over this, a job that uses nothing new pays for what is new.
BAR = 1.03
PARTS = ("here", "server", "all")

Samples = dict[tuple[str, str], list[float]]
"""Microseconds of each turn, by step and side."""


def main() -> int:
    options = arguments()
    # Servers that were started must end also when a run is told to.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    slower = False
    with tempfile.TemporaryDirectory(prefix="headrace-turns-") as name:
        versions = [
            unpacked(Path(name) / side, commit)
            for side, commit in (("old", options.old), ("new", options.new))
        ]
        for engine in options.engine or ENGINES:
            old, new = measured(engine, versions, options)
            slower |= told(engine, old, new)
    return 1 if slower else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("old", help="the commit to compare with")
    parser.add_argument("new", nargs="?", default=WORKING_TREE, help="default: the working tree")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="default: all")
    parser.add_argument("--turns", type=int, default=8, help="of each version")
    parser.add_argument("--single", type=int, default=1_500, help="jobs enqueued one by one")
    parser.add_argument("--many", type=int, default=20_000, help="jobs enqueued at once")
    return parser.parse_args()


def unpacked(folder: Path, commit: str) -> Path:
    """Return a folder with the source of a commit, compiled."""
    folder.mkdir()
    if commit == WORKING_TREE:
        shutil.copytree(ROOT / "src", folder / "src")
    else:
        git = ["git", "-C", str(ROOT), "archive", commit, "src"]
        archive = subprocess.run(git, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
    compileall.compile_dir(folder, quiet=2)
    return folder / "src"


def measured(
    engine: str, versions: list[Path], options: argparse.Namespace
) -> tuple[Samples, Samples]:
    """Return the samples of both versions on one engine."""
    samples: tuple[Samples, Samples] = (defaultdict(list), defaultdict(list))
    arena = Arena(engine)
    try:
        for turn in range(options.turns):
            # First one begins, then the other: a machine may become faster or slower meanwhile.
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                with arena.fresh():
                    answer = run(arena, versions[which], options)
                for step, sides in answer["steps"].items():
                    for side, value in sides.items():
                        samples[which][step, side].append(value)
            print(f"{engine}: turn {turn + 1} of {options.turns}", file=sys.stderr, flush=True)
    finally:
        arena.close()
    return samples


def run(arena: Arena, version: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One turn of one version."""
    command: list[object] = ["--single", options.single, "--many", options.many]
    if arena.server is not None and arena.server.process is not None:
        command += ["--server", arena.server.process.pid]
    path = {"PYTHONPATH": f"{version}{os.pathsep}{ROOT}"}
    answer = arena.call(PROGRAM, *command, environment=path)
    if not answer["from"].startswith(str(version)):
        raise RuntimeError(f"{answer['from']} was measured instead of {version}")
    return answer


def told(engine: str, old: Samples, new: Samples) -> bool:
    """Print the comparison. Whether a step costs more than it may."""
    slower = False
    for (step, part), values in rows(old).items():
        best, median = (
            each(rows(new)[step, part]) / each(values) for each in (min, statistics.median)
        )
        after = rows(new)[step, part]
        print(
            f"{engine:9} {step:15} {part:7}"
            f" best {min(values):7.2f} -> {min(after):7.2f} µs ({best - 1:+6.1%})"
            f"  median {statistics.median(values):7.2f} -> {statistics.median(after):7.2f} µs"
            f" ({median - 1:+6.1%})",
            flush=True,
        )
        slower |= part == "all" and min(best, median) > BAR
    return slower


def rows(samples: Samples) -> dict[tuple[str, str], list[float]]:
    """The samples with the sum of both sides, where there are two."""
    found: dict[tuple[str, str], list[float]] = {}
    for step, side in samples:
        if side == "server" and not any(samples[step, side]):
            continue
        found[step, side] = samples[step, side]
    for step in {step for step, _ in samples}:
        pairs = zip(samples[step, "here"], samples[step, "server"], strict=True)
        found[step, "all"] = [here + server for here, server in pairs]
    return dict(sorted(found.items(), key=lambda row: (row[0][0], PARTS.index(row[0][1]))))


if __name__ == "__main__":
    sys.exit(main())
