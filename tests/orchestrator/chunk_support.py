"""What tests of chunks share: the arguments of a job, and handlers that can be held."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import headrace
from headrace.model.job import Job
from headrace.model.status import Status
from tests.support.processes import until


@dataclass
class Row:
    number: int
    shop: str = "one"


class Calls:
    """What calls a handler got, and a way to hold them until the test lets go."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self.begun = asyncio.Event()
        self.release = asyncio.Event()

    def note(self, chunk: headrace.Chunk[Row]) -> None:
        self.seen.append([job.args.number for job in chunk])
        self.begun.set()

    async def hold(self, chunk: headrace.Chunk[Row]) -> None:
        self.note(chunk)
        await self.release.wait()

    async def started(self) -> None:
        await asyncio.wait_for(self.begun.wait(), 20)


async def fill(app: headrace.App, task: Any, count: int, **options: Any) -> list[Job]:
    bound = task.options(**options) if options else task
    return await app.enqueue_many(bound.job(number=number) for number in range(count))


async def statuses(app: headrace.App, jobs: list[Job]) -> list[Status]:
    return [(await app.get(job.id)).status for job in jobs]


async def waiting(orchestrator: headrace.JobOrchestrator, count: int) -> Any:
    """Wait until so many jobs are claimed; return the collector that they wait in."""
    await until(lambda: orchestrator.telemetry.claimed >= count, f"{count} claimed jobs")
    assert orchestrator._runtime is not None
    return orchestrator._runtime.dispatcher.chunks
