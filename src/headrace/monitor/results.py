"""Reads jobs, and waits for them to finish, in round trips that all callers of a process share."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from headrace.engine.base import Viewing
from headrace.errors import EngineUnavailable, JobNotFound
from headrace.model.ids import parse_id
from headrace.model.job import Job
from headrace.monitor.words import span
from headrace.task.app_like import AppLike

SHORTEST_WAIT = 0.005
LONGEST_WAIT = 0.5
MOST_READ = 500

CLOSED = "the App was closed while somebody waited for job {}; the job goes on, ask for it again"


class ResultWatch:
    """Wakes waiters when their jobs reach a final status."""

    def __init__(self, engine: Viewing) -> None:
        self._engine = engine
        self._waiters: dict[str, list[asyncio.Future[Job]]] = defaultdict(list)
        self._task: asyncio.Task[None] | None = None
        self._fresh = asyncio.Event()

    async def finished(self, job_id: str, timeout: float | None) -> Job:
        """Return the job once it is final. Raises TimeoutError, or JobNotFound."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Job] = loop.create_future()
        self._waiters[job_id].append(future)
        self._fresh.set()
        if self._task is None:
            self._task = loop.create_task(self._poll())
        try:
            return await asyncio.wait_for(future, timeout)
        finally:
            waiting = self._waiters.get(job_id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiters.pop(job_id, None)

    async def close(self) -> None:
        """Stop polling, and raise an error for every waiter."""
        for job_id in list(self._waiters):
            self._settle(job_id, EngineUnavailable(CLOSED.format(job_id)))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _poll(self) -> None:
        wait = SHORTEST_WAIT
        try:
            while self._waiters:
                self._fresh.clear()
                await self._poll_once()
                try:
                    # A new waiter may wait for a short job: poll again soon.
                    await asyncio.wait_for(self._fresh.wait(), wait)
                    wait = SHORTEST_WAIT
                    await asyncio.sleep(wait)
                except TimeoutError:
                    wait = min(wait * 1.5, LONGEST_WAIT)
        finally:
            self._task = None

    async def _poll_once(self) -> None:
        ids = list(self._waiters)
        try:
            found = {job.id: job for job in await self._engine.get(ids)}
        except EngineUnavailable:
            return  # until the waiters' own timeouts
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
        _settle(self._waiters.pop(job_id, []), answer)


class JobReader:
    """`App.get` for many callers: while one read is under way, the next batch fills up."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._waiting: dict[str, list[asyncio.Future[Job]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def get(self, job_id: str) -> Job:
        """One job. Raises `JobNotFound`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Job] = loop.create_future()
        self._waiting.setdefault(parse_id(job_id), []).append(future)
        if self._task is None or self._task.done():
            # A task of its own: a caller that goes away must not take the others with it.
            self._task = loop.create_task(self._read(), name="headrace reader")
        return await future

    async def _read(self) -> None:
        while self._waiting:
            ids = list(self._waiting)[:MOST_READ]
            asked = {job_id: self._waiting.pop(job_id) for job_id in ids}
            try:
                await self._host.open()
                found = {job.id: job for job in await self._host.engine.get(ids)}
            except Exception as error:  # every caller gets it
                for futures in asked.values():
                    _settle(futures, error)
                continue
            for job_id, futures in asked.items():
                _settle(futures, found.get(job_id) or self._not_found(job_id))

    def _not_found(self, job_id: str) -> JobNotFound:
        return not_found(job_id, self._host.settings.history_seconds)


def not_found(job_id: str, history_seconds: float) -> JobNotFound:
    """Return the error for an id that no job has, with how long jobs are kept."""
    return JobNotFound(
        f"no job has the id {job_id}; it may have been pruned from history "
        f"(kept for {span(history_seconds)})"
    )


def _settle(futures: list[asyncio.Future[Job]], answer: Job | Exception) -> None:
    for future in futures:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
