"""A scene for crash tests: a store, a program to run workers of, and a log outside the engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

import headrace
from headrace.model.job import Job
from tests.conftest import ENGINES, Servers, store_url
from tests.crash import journal, tasks
from tests.crash.journal import Line
from tests.support.processes import LIMIT, Process, Processes, until

SHORT = 1.0
"""The lease of workers that are going to die or hang, so that others need not wait long."""

LONG = 4.0
"""The lease of the others: a busy machine must not make them lose it."""


class Scene:
    """A store, the test's own door to it, and workers on it that may die."""

    def __init__(self, url: str, folder: Path, processes: Processes) -> None:
        self.url = url
        self.folder = folder
        self.processes = processes
        self.journal = folder / "journal.jsonl"
        self.app = tasks.register(headrace.App(url))

    def worker(
        self,
        name: str,
        *,
        lease: float = LONG,
        slots: int = 10,
        die: str = "",
        hold: str = "",
    ) -> Process:
        """Start a real worker. `die` and `hold` name the point where it kills itself or waits."""
        return self.processes.headrace(
            "worker",
            *("--app", "tests.crash.program"),
            *("--max-workers", str(slots)),
            *("--name", name),
            HEADRACE_URL=self.url,
            HEADRACE_LEASE_SECONDS=str(lease),
            **{
                journal.VARIABLE: str(self.journal),
                tasks.DIE: die,
                tasks.HOLD: hold,
                tasks.HOLD_UNTIL: f"{self.folder}/release",
            },
        )

    async def freeze(self, worker: Process) -> None:
        """Stop a worker as a machine that hangs would, but not in the middle of a write: SQLite
        has one writer at a time, and one that stands still keeps all others out for good.
        """
        while True:
            worker.freeze()
            try:
                await asyncio.wait_for(self.app.engine.pause("nobody", False), 1)
            except (TimeoutError, headrace.EngineUnavailable):
                worker.thaw()
            else:
                return

    def release(self) -> None:
        """Let a worker that waits at its point go on."""
        (self.folder / "release").touch()

    def open_gate(self, token: int) -> None:
        """Let attempts with this token return."""
        Path(f"{self.gate}{token}").touch()

    @property
    def gate(self) -> str:
        """What to hand to gated jobs."""
        return f"{self.folder}/gate-"

    def lines(self, event: str = "", job: str = "") -> list[Line]:
        """What was written down, of one kind and one job if asked for."""
        return journal.read(
            self.journal,
            lambda line: (not event or line.event == event) and (not job or line.job == job),
        )

    def counts(self, event: str) -> Counter[str]:
        """How often something happened to each job."""
        return Counter(line.job for line in self.lines(event))

    async def happened(self, event: str, count: int = 1, limit: float = LIMIT) -> list[Line]:
        """Wait until something was written down so many times."""
        await until(lambda: len(self.lines(event)) >= count, f"{count} times {event}", limit)
        return self.lines(event)

    async def all_over(self, limit: float = LIMIT) -> bool:
        """Wait until nothing is left to do."""

        async def over() -> bool:
            queues = await self.app.engine.queues()
            return not any(q.scheduled + q.waiting + q.ready + q.running for q in queues)

        return await until(over, "the end of all jobs", limit)

    async def has_workers(self, count: int) -> bool:
        """Wait until so many workers have introduced themselves."""

        async def here() -> bool:
            return len(await self.app.engine.workers()) == count

        return await until(here, f"{count} workers")

    async def jobs(self, jobs: Sequence[Job]) -> list[Job]:
        """These jobs as they are now; none is missing."""
        found = await self.app.engine.get([job.id for job in jobs])
        assert len(found) == len(jobs)
        return found


@pytest.fixture(params=ENGINES)
async def scene(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Scene]:
    """A new scene. When the test is over, the store's invariants must hold."""
    with Processes(tmp_path) as processes:
        scene = Scene(store_url(request.param, servers, tmp_path), tmp_path, processes)
        async with scene.app:
            yield scene
            assert await scene.app.engine.audit() == []
