"""Child processes that are killed, that die, that fill their memory; none is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from headrace.model.retry import retryable
from headrace.orchestrator.isolation import ChildDied, ProcessPool
from headrace.orchestrator.isolation.child_process import ChildProcess
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import (
    RecordingContext,
    Run,
    a_claim,
    gone,
    pids_in,
    until,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("task", [handlers.hang, handlers.sleep])
async def test_a_handler_that_hangs_is_killed_with_all_it_started(
    run: Run, tmp_path: Path, task: object
) -> None:
    file = tmp_path / "pids"
    running = asyncio.ensure_future(run(task, file=str(file)))
    pids = await pids_in(file)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone(pids[0]), "it has to be gone before another attempt may start"
    for pid in pids:
        await until(lambda pid=pid: gone(pid))  # type: ignore[misc]
    assert await run(handlers.add, a=1) == 3


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("exit", "exited with code 3"),
        ("segfault", "killed by SIGSEGV"),
        ("killed", "killed by SIGKILL .out of memory"),
    ],
)
async def test_a_death_is_an_error_that_can_be_retried(run: Run, how: str, message: str) -> None:
    with pytest.raises(ChildDied, match=f'task "end" .*{message}') as raised:
        await run(handlers.end, how=how)
    assert retryable(raised.value)
    assert await run(handlers.add, a=1) == 3


async def test_a_death_is_seen_though_another_process_holds_the_channel_open(
    run: Run, tmp_path: Path
) -> None:
    async with asyncio.timeout(50):
        with pytest.raises(ChildDied, match="exited with code 4"):
            await run(handlers.fork_and_die, file=str(tmp_path / "pid"))
    [forked] = await pids_in(tmp_path / "pid")
    assert gone(forked)


async def test_memory_is_capped(run: Run) -> None:
    pid = await run(handlers.pid)
    with pytest.raises(MemoryError, match="more than its memory_limit") as raised:
        await run(handlers.fill, mebibytes=1_000)
    assert type(raised.value).__name__ == "MemoryError"
    assert retryable(raised.value)
    assert await run(handlers.fill, mebibytes=50) == 50 * handlers.MEBIBYTE
    assert await run(handlers.pid) == pid, "others are not disturbed"


async def test_a_limit_that_is_too_small_fails_the_job_and_not_the_worker(run: Run) -> None:
    with pytest.raises(Exception, match="memory_limit"):
        await run(handlers.starved)
    assert await run(handlers.add, a=1) == 3


async def test_closing_kills_what_still_runs(pool: ProcessPool, tmp_path: Path) -> None:
    job = a_claim(handlers.sleep, file=str(tmp_path / "pids"))
    running = asyncio.ensure_future(pool.run(handlers.sleep, job, RecordingContext(job)))
    [pid] = await pids_in(tmp_path / "pids")
    await pool.close()
    assert gone(pid)
    with pytest.raises(ChildDied):
        await running


async def test_a_cancel_at_any_moment_leaves_no_process(pool: ProcessPool, run: Run) -> None:
    chance = random.Random(5)
    for _ in range(12):
        running = asyncio.ensure_future(run(handlers.slow, seconds=0.01))
        await asyncio.sleep(chance.choice([0, 0.0001, 0.001, 0.01, 0.1, 0.3, 0.5]))
        running.cancel()
        await asyncio.wait({running})
    await asyncio.gather(run(handlers.pid), run(handlers.pid))


async def test_a_job_that_ends_a_process_which_had_others_before_is_not_run_again(
    run: Run, tmp_path: Path
) -> None:
    await run(handlers.pid)
    with pytest.raises(ChildDied, match="exited with code 4"):
        await run(handlers.end_after_a_line, file=str(tmp_path / "lines"))
    assert (tmp_path / "lines").read_text() == "begun\n"


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancel_while_a_process_is_started_leaves_no_socket_open(turns: int) -> None:
    starting = asyncio.ensure_future(ChildProcess.spawn())
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait({starting})
    if not starting.cancelled():
        await starting.result().kill()
    del starting
    gc.collect()  # an open socket would give a ResourceWarning


async def test_a_signal_to_the_service_does_not_end_children(run: Run) -> None:
    pid = await run(handlers.pid)
    assert os.getsid(pid) == pid, "a terminal's Ctrl-C does not reach it"
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)
    assert await run(handlers.pid) == pid


@pytest.mark.parametrize("task", ["sleep", "hang"])
async def test_no_process_outlives_a_worker_that_is_killed(tmp_path: Path, task: str) -> None:
    file = tmp_path / "pids"
    program = f"""
import asyncio
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import RecordingContext, a_claim
from headrace.orchestrator.isolation import ProcessPool

async def main():
    pool = ProcessPool(app_path=None, size=2)
    job = a_claim(handlers.{task}, file={str(file)!r})
    await pool.run(handlers.{task}, job, RecordingContext(job))

asyncio.run(main())
"""
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=ROOT)
    try:
        pids = await pids_in(file)
    finally:
        worker.kill()
        await worker.wait()
    await until(lambda: gone(pids[0]))
    for pid in pids[1:]:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)
