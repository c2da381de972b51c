"""Breakers whose workers are killed and frozen. What started when is judged outside the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import headrace
from tests.breakers.conftest import all_done, apart, closed, opened
from tests.breakers.program import FOLDER, PAUSE
from tests.support.processes import Process, Processes, until


class Scene:
    """Workers on one store, and a folder that says whether the service works."""

    def __init__(self, url: str, folder: Path, processes: Processes) -> None:
        self.url, self.folder, self.processes = url, folder, processes
        self.app = headrace.App(url)

        @self.app.task(retries=0, breaker=headrace.Breaker(failures=3, within=60, pause=PAUSE))
        async def call(number: int = 0) -> None: ...

    def worker(self, name: str) -> Process:
        return self.processes.headrace(
            *("worker", "--app", "tests.breakers.program", "--max-workers", "4", "--name", name),
            HEADRACE_URL=self.url,
            HEADRACE_LEASE_SECONDS="2",
            **{FOLDER: str(self.folder)},
        )

    def starts(self) -> list[tuple[float, int]]:
        """When handlers were started, and in which process."""
        file = self.folder / "starts"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(float(at), int(pid)) for at, pid in (line.split() for line in lines)]

    async def broken(self) -> list[str]:
        """Have a breaker opened, and return the jobs that wait; what started is forgotten."""
        task = self.app.tasks["call"]
        jobs = await self.app.enqueue_many(task.job(number) for number in range(40))
        await opened(self.app)

        # Begun before the others were told, as far as a worker may.
        async def quiet() -> bool:
            seen = self.starts()
            await asyncio.sleep(0.2)
            return bool(seen) and seen == self.starts()

        await until(quiet, "nothing starts")
        (self.folder / "starts").unlink()
        return [job.id for job in jobs]


@pytest.fixture
async def scene(url: str, tmp_path: Path, processes: Processes):  # type: ignore[no-untyped-def]
    folder = tmp_path / "told"
    folder.mkdir()
    scene = Scene(url, folder, processes)
    async with scene.app:
        yield scene
        for process in processes.started:
            process.destroy()
        assert await scene.app.engine.audit() == []


@pytest.mark.parametrize("fate", ["killed", "frozen"])
async def test_another_is_tried_when_the_worker_of_a_trial_is_gone(scene: Scene, fate: str) -> None:
    workers = [scene.worker(f"w{number}") for number in range(3)]
    ids = await scene.broken()
    (scene.folder / "slow").touch()
    [(_, pid)] = await until(scene.starts, "a trial")
    [victim] = [each for each in workers if each.pid == pid]
    if fate == "killed":
        victim.kill()
    else:
        await frozen(scene.app, victim)
    await until(lambda: len(scene.starts()) >= 2, "another trial")
    (scene.folder / "slow").unlink()
    await until(lambda: len(scene.starts()) >= 3, "it failed, and one more is tried")
    if fate == "frozen":
        victim.thaw()
        await until(lambda: len(scene.starts()) >= 4, "one more")
    starts = scene.starts()
    assert starts[1][1] != pid
    # A worker that dies has told when it took the job, a moment before the handler began.
    assert apart([at for at, _ in starts]) >= 0.8 * PAUSE
    (scene.folder / "works").touch()
    await closed(scene.app)
    statuses = await all_done(scene.app, ids)
    assert statuses.count("completed") >= 15


async def frozen(app: headrace.App, worker: Process) -> None:
    """Stop a worker, but not in the middle of a write: SQLite has one writer at a time."""
    while True:
        worker.freeze()
        try:
            await asyncio.wait_for(app.engine.pause("nobody", False), 1)
        except (TimeoutError, headrace.EngineUnavailable):
            worker.thaw()
        else:
            return
