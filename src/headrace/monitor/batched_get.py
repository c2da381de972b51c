"""Reads single jobs. Concurrent callers share a round trip."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.errors import JobNotFound
from headrace.model.ids import parse_id
from headrace.model.job import Job
from headrace.task.app_like import AppLike

MOST = 500


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
            ids = list(self._waiting)[:MOST]
            asked = {job_id: self._waiting.pop(job_id) for job_id in ids}
            try:
                await self._host.open()
                found = {job.id: job for job in await self._host.engine.get(ids)}
            except Exception as error:  # every caller gets it
                for futures in asked.values():
                    for future in futures:
                        if not future.done():
                            future.set_exception(error)
                continue
            for job_id, futures in asked.items():
                job = found.get(job_id)
                for future in futures:
                    if future.done():
                        continue
                    if job is None:
                        future.set_exception(self._not_found(job_id))
                    else:
                        future.set_result(job)

    def _not_found(self, job_id: str) -> JobNotFound:
        kept = timedelta(seconds=self._host.settings.history_seconds)
        return JobNotFound(
            f"no job has the id {job_id}; it may have been pruned from history (kept for {kept})"
        )
