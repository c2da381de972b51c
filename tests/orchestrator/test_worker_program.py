"""A worker as a program: signals, exit codes, a hang."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import headrace
from headrace.model.job import Job
from headrace.model.status import Status
from tests.orchestrator.conftest import became, ended, until
from tests.orchestrator.worker_program import make_app
from tests.support.servers import free_port

ROOT = Path(__file__).parents[2]


class Program:
    """A worker in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder

    async def begun(self, name: str) -> None:
        await until((self.folder / f"{name}.begun").exists)

    async def says(self, words: str) -> None:
        assert self.process.stderr is not None
        async with asyncio.timeout(20):
            while words not in (await self.process.stderr.readline()).decode():
                pass

    def let_go(self, name: str) -> None:
        (self.folder / f"{name}.go").touch()

    async def end(self) -> tuple[int, str]:
        _, errors = await asyncio.wait_for(self.process.communicate(), 30)
        assert self.process.returncode is not None
        return self.process.returncode, errors.decode()


class Launcher:
    """Starts programs, and ends those that the test left."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.started: list[asyncio.subprocess.Process] = []

    async def start(self, *settings: str, url: str | None = None, ready: bool = True) -> Program:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.orchestrator.worker_program",
            url or self.url,
            str(self.folder),
            *settings,
            cwd=ROOT,
            stderr=asyncio.subprocess.PIPE,
        )
        self.started.append(process)
        if ready:
            await until((self.folder / "ready").exists)
        return Program(process, self.folder)


@pytest.fixture
def app(here: str, tmp_path: Path) -> headrace.App:
    return make_app(here, tmp_path)


@pytest.fixture
async def launcher(here: str, tmp_path: Path, app: headrace.App) -> AsyncIterator[Launcher]:
    async with app:
        launcher = Launcher(here, tmp_path)
        yield launcher
        for process in launcher.started:
            if process.returncode is None:
                process.kill()
                await process.communicate()


async def held(app: headrace.App, name: str) -> Job:
    return await app.enqueue("until_told", {"name": name})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_running_jobs_finish(
    app: headrace.App, launcher: Launcher, number: signal.Signals
) -> None:
    program = await launcher.start()
    job = await held(app, "a")
    await program.begun("a")
    program.process.send_signal(number)

    async def alone() -> bool:
        return not any(worker.alive for worker in await app.engine.workers())

    program.let_go("a")
    code, errors = await program.end()
    assert code == 0, errors
    over = await app.get(job.id)
    assert (over.status, over.result) == (Status.COMPLETED, "a")
    assert await alone()


async def test_a_second_signal_stops_at_once(app: headrace.App, launcher: Launcher) -> None:
    program = await launcher.start()
    job = await held(app, "a")
    await program.begun("a")
    program.process.send_signal(signal.SIGTERM)
    await program.says("send it again to stop at once")
    program.process.send_signal(signal.SIGTERM)
    code, errors = await program.end()
    assert code == 128 + signal.SIGTERM, errors
    back = await app.get(job.id)
    assert (back.status, back.attempt) == (Status.PENDING, 1)
    assert back.error_type == "WorkerStopped"


async def test_a_killed_worker_loses_no_job(app: headrace.App, launcher: Launcher) -> None:
    program = await launcher.start("lease_seconds=1")
    job = await held(app, "a")
    await program.begun("a")
    program.process.kill()
    await program.end()
    (program.folder / "ready").unlink()
    program.let_go("a")
    await launcher.start("lease_seconds=1")
    over = await ended(app, job)
    assert (over.status, over.attempt) == (Status.COMPLETED, 2)
    assert [entry.failure.type for entry in over.attempts if entry.failure] == ["WorkerLost"]


async def test_a_hanging_worker_ends_and_others_take_over(
    app: headrace.App, launcher: Launcher
) -> None:
    settings = ("lease_seconds=1", "grace_seconds=0.2", "block_seconds=0.1")
    program = await launcher.start(*settings)
    job = await app.enqueue("hang", {"name": "a"})
    await program.begun("a")
    code, errors = await program.end()
    assert code == 70
    assert "hangs in a job that is past its time" in errors
    assert f"job {job.id}" in errors
    (program.folder / "ready").unlink()
    await launcher.start(*settings)
    await became(app, job, Status.RUNNING)
    again = await until_attempt(app, job, 2)
    assert [entry.failure.type for entry in again.attempts if entry.failure] == ["TimedOut"]


async def until_attempt(app: headrace.App, job: Job, attempt: int) -> Job:
    async def reached() -> Job | None:
        now = await app.get(job.id)
        return now if now.attempt >= attempt else None

    found: Job = await until(reached)
    return found


async def test_a_stuck_thread_does_not_keep_the_program_from_ending(
    app: headrace.App, launcher: Launcher
) -> None:
    program = await launcher.start()
    job = await app.enqueue("stubborn", {"name": "a"})
    assert (await ended(app, job)).status is Status.TIMEOUT
    program.process.send_signal(signal.SIGTERM)
    code, errors = await program.end()
    assert code == 0
    assert "1 threads do not stop; ending without them" in errors


async def test_stages_that_hang_do_not_keep_the_program_from_ending(
    app: headrace.App, launcher: Launcher
) -> None:
    program = await launcher.start("grace_seconds=0.2")
    job = await app.enqueue("hangs_in_stages", {"name": "a"})
    await program.begun("a")

    async def last() -> bool:
        return (await app.get(job.id)).stage == "hang[last]"

    await until(last)
    program.process.send_signal(signal.SIGTERM)
    code, errors = await program.end()
    assert code == 0
    assert "threads do not stop; ending without them" in errors
    assert (await app.get(job.id)).error_type == "WorkerStopped"


async def test_a_program_gives_up_when_told_so(launcher: Launcher) -> None:
    away = f"redis://127.0.0.1:{free_port()}/0"
    program = await launcher.start("connection_retries=1", url=away, ready=False)
    code, errors = await program.end()
    assert code == 1
    assert "trying again in 1 s" in errors
    assert "connection_retries is 1" in errors


async def test_a_program_that_waits_for_its_engine_can_be_stopped(launcher: Launcher) -> None:
    away = f"redis://127.0.0.1:{free_port()}/0"
    program = await launcher.start(url=away, ready=False)
    await program.says("trying again in 1 s")
    program.process.send_signal(signal.SIGTERM)
    code, _ = await program.end()
    assert code == 0
