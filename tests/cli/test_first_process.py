"""The worker as process number 1 of a container."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil  # type: ignore[import-untyped]
import pytest

from tests.cli.conftest import Cli, wait_for
from tests.cli.test_worker import started, told

# Like process number 1, a "subreaper" is given whatever loses its parent below it.
PROGRAM = """
import ctypes
import os
import sys

from headrace.cli import main
from headrace.cli.services import first_process

assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
first_process.FIRST = os.getpid()
main.main(sys.argv[1:])
"""

ZOO = """
import asyncio
import subprocess
from pathlib import Path

import headrace

app = headrace.App()


@app.task
def leave() -> int:
    for _ in range(5):
        subprocess.run(["/bin/sh", "-c", "sleep 0.01 &"], check=True)
    return subprocess.run(["/bin/sh", "-c", "exit 7"]).returncode


@app.task
async def leave_on_the_loop() -> int:
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "sleep 0.01 & exit 8")
    return await process.wait()


@app.task
async def nap() -> None:
    while not Path("wake").exists():
        await asyncio.sleep(0.02)
"""


@pytest.fixture
def first(cli: Cli) -> Iterator[subprocess.Popen[str]]:
    """A worker that takes itself for process number 1."""
    (cli.folder / "zoo.py").write_text(ZOO, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "worker", "--app", "zoo"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cli.folder,
        env=cli.environment(),
    ) as process:
        started(process)
        yield process
        if process.poll() is None:
            family = psutil.Process(process.pid)
            for each in (*family.children(recursive=True), family):
                each.kill()


def enqueue(cli: Cli, task: str, *arguments: str) -> str:
    return cli("enqueue", task, *arguments, "--app", "zoo").out.strip()


def test_the_first_process_collects_orphans_and_steals_no_exit_code(
    cli: Cli, first: subprocess.Popen[str]
) -> None:
    jobs = enqueue(cli, "leave"), enqueue(cli, "leave_on_the_loop")
    wait_for(lambda: {cli.status(job_id) for job_id in jobs} == {"completed"})
    results = [cli("jobs", "show", job_id, "--json").json["result"] for job_id in jobs]
    assert results == [7, 8]
    process = psutil.Process(first.pid)
    wait_for(lambda: "sleep" not in [each.name() for each in process.children(recursive=True)])
    [worker] = process.children()
    worker.kill()
    assert first.wait(20) == 128 + signal.SIGKILL, "it ends as the worker does"


def test_the_first_process_passes_signals_on(cli: Cli, first: subprocess.Popen[str]) -> None:
    job_id = enqueue(cli, "nap")
    wait_for(lambda: cli.status(job_id) == "running")
    first.send_signal(signal.SIGTERM)
    told(first, "finishing running jobs")
    cli.wake()
    assert first.wait(20) == 0
    assert cli.status(job_id) == "completed"
