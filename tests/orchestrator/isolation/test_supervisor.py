"""What handlers start ends with their process, whatever session it is in and whoever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from headrace.orchestrator.isolation import ChildDied, ProcessPool, supervisor
from headrace.orchestrator.isolation import child_process as process_module
from tests.orchestrator.isolation import unruly
from tests.orchestrator.isolation.conftest import Run, gone, pids_in, until

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Path]:
    """Where a handler writes the numbers of its processes. None of them outlives the test."""
    file = tmp_path / "pids"
    yield file
    for pid in await pids_in(file):
        if not gone(pid) and psutil.Process(pid).name() == "sleep":
            os.kill(pid, signal.SIGKILL)


async def test_a_cancel_ends_programs_in_sessions_of_their_own(run: Run, file: Path) -> None:
    running = asyncio.ensure_future(run(unruly.grow, file=str(file)))
    pids = await pids_in(file)
    assert not any(map(gone, pids))
    running.cancel()
    await asyncio.wait({running})
    assert [pid for pid in pids if not gone(pid)] == [], "before another attempt may start"


@pytest.mark.parametrize(
    ("then", "message"), [("exit", "exited with code 3"), ("die", "killed by SIGKILL")]
)
async def test_a_child_that_dies_takes_its_programs_along(
    run: Run, file: Path, then: str, message: str
) -> None:
    with pytest.raises(ChildDied, match=message):
        await run(unruly.grow, file=str(file), then=then)
    assert [pid for pid in await pids_in(file) if not gone(pid)] == []


async def test_a_child_that_leaves_takes_its_programs_along(
    pool: ProcessPool, run: Run, file: Path
) -> None:
    await run(unruly.grow, file=str(file), then="return")
    pids = await pids_in(file)
    assert not any(map(gone, pids)), "a warm process keeps what its handlers have started"
    await pool.close()
    assert [pid for pid in pids if not gone(pid)] == []


async def test_a_killed_worker_leaves_no_program_behind(file: Path) -> None:
    program = f"""
import asyncio
from tests.orchestrator.isolation import unruly
from tests.orchestrator.isolation.conftest import RecordingContext, a_claim
from headrace.orchestrator.isolation import ProcessPool

async def main():
    pool = ProcessPool(app_path=None, size=2)
    job = a_claim(unruly.grow, file={str(file)!r})
    await pool.run(unruly.grow, job, RecordingContext(job))

asyncio.run(main())
"""
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=ROOT)
    try:
        pids = await pids_in(file)
        assert not any(map(gone, pids))
    finally:
        worker.kill()
        await worker.wait()
    await until(lambda: all(map(gone, pids)))


async def test_a_killed_supervisor_leaves_no_program_behind(run: Run, file: Path) -> None:
    running = asyncio.ensure_future(run(unruly.grow, file=str(file)))
    child, supervisor, *programs, bare = await pids_in(file)
    assert supervisor != os.getpid()
    os.kill(supervisor, signal.SIGKILL)
    with pytest.raises(ChildDied, match="killed by SIGKILL"):
        await running
    assert [pid for pid in (child, *programs) if not gone(pid)] == []
    assert not gone(bare), "without its environment it cannot be found any more"


async def test_a_death_is_told_though_handlers_have_all_threads_of_the_loop(
    run: Run, file: Path
) -> None:
    loop, go = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    hanging = loop.run_in_executor(None, go.wait)
    try:
        with pytest.raises(ChildDied, match="killed by SIGKILL"):
            async with asyncio.timeout(30):
                await run(unruly.grow, file=str(file), then="die")
        assert [pid for pid in await pids_in(file) if not gone(pid)] == []
    finally:
        go.set()
        await hanging


async def test_a_supervisor_that_stands_still_is_not_waited_for(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "SUPERVISOR_SECONDS", 0.2)
    running = asyncio.ensure_future(run(unruly.grow, file=str(file)))
    child, supervisor, *programs = await pids_in(file)
    assert supervisor != os.getpid()
    os.kill(supervisor, signal.SIGSTOP)
    running.cancel()
    await asyncio.wait({running})
    assert [pid for pid in (child, supervisor, *programs) if not gone(pid)] == []


async def test_what_ended_below_a_child_is_collected(run: Run, tmp_path: Path) -> None:
    supervisor = await run(unruly.orphans, count=5)
    await until(lambda: len(psutil.Process(supervisor).children()) == 1)


def test_a_process_that_is_about_to_end_is_found_until_it_has_ended() -> None:
    """A large one takes a while to give its memory back, and has no environment meanwhile."""
    fill = "b = b'x' * 200_000_000; print(flush=True); import time; time.sleep(60)"
    lost = 0
    for turn in range(5):
        identity = f"ending-{os.getpid()}-{turn}"
        with subprocess.Popen(
            [sys.executable, "-c", fill],
            env={**os.environ, supervisor.MARKER: identity},
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.kill()
            while True:
                found = process.pid in supervisor.marked(identity)
                if gone(process.pid):
                    break
                lost += not found
    assert lost == 0
