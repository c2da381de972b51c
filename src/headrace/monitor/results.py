"""Waiting for jobs to finish. All waiters of a process share one look at the engine."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from headrace.engine.base import Viewing
from headrace.errors import EngineUnavailable, JobNotFound
from headrace.model.job import Job

SHORTEST_WAIT = 0.005
LONGEST_WAIT = 0.5

CLOSED = "the App was closed while somebody waited for job {}; the job goes on, ask for it again"


class ResultWatch:
    """Tells when jobs reach a final status."""

    def __init__(self, engine: Viewing) -> None:
        self._engine = engine
        self._waiters: dict[str, list[asyncio.Future[Job]]] = defaultdict(list)
        self._task: asyncio.Task[None] | None = None
        self._fresh = asyncio.Event()

    async def finished(self, job_id: str, timeout: float | None) -> Job:
        """The job once it is final. Raises TimeoutError, or JobNotFound."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Job] = loop.create_future()
        self._waiters[job_id].append(future)
        self._fresh.set()
        if self._task is None:
            self._task = loop.create_task(self._look())
        try:
            return await asyncio.wait_for(future, timeout)
        finally:
            waiting = self._waiters.get(job_id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiters.pop(job_id, None)

    async def close(self) -> None:
        """Stop looking, and tell those who wait."""
        for job_id in list(self._waiters):
            self._settle(job_id, EngineUnavailable(CLOSED.format(job_id)))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        wait = SHORTEST_WAIT
        try:
            while self._waiters:
                self._fresh.clear()
                await self._look_once()
                try:
                    # Somebody new may be waiting for a short job: look soon again.
                    await asyncio.wait_for(self._fresh.wait(), wait)
                    wait = SHORTEST_WAIT
                    await asyncio.sleep(wait)
                except TimeoutError:
                    wait = min(wait * 1.5, LONGEST_WAIT)
        finally:
            self._task = None

    async def _look_once(self) -> None:
        ids = list(self._waiters)
        try:
            found = {job.id: job for job in await self._engine.get(ids)}
        except EngineUnavailable:
            return  # the waiters' own timeouts decide how long to hope
        except Exception as error:
            for job_id in ids:
                self._settle(job_id, error)
            return
        for job_id in ids:
            job = found.get(job_id)
            if job is None:
                self._settle(job_id, JobNotFound(f"job {job_id} does not exist (any more)"))
            elif job.status.final:
                self._settle(job_id, job)

    def _settle(self, job_id: str, answer: Job | Exception) -> None:
        for future in self._waiters.pop(job_id, []):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
