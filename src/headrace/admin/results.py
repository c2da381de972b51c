"""The verbs of an App for one job: as it is now, and what its handler returned."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from headrace.admin.records import RecordVerbs
from headrace.errors import InvalidInput, JobFailed, MissingEncryptionKey, ResultTimeout
from headrace.model.ids import parse_id
from headrace.model.job import Job
from headrace.model.sealed import key_of_args
from headrace.model.status import Status
from headrace.monitor.results import not_found
from headrace.task.returned import decoder_of_results

R = TypeVar("R")


class ResultVerbs(RecordVerbs):
    """One job. Whoever has the job, and not only its id, gets the type of its result."""

    @overload
    async def get(self, job_id: Job[R]) -> Job[R]: ...
    @overload
    async def get(self, job_id: str) -> Job: ...

    async def get(self, job_id: str | Job) -> Job:
        """One job as it is now, with its status, stage, progress, attempt, error and result, by its
        id or as it was before.
        """
        await self.open()
        asked = job_id if isinstance(job_id, str) else job_id.id
        found = await self._engine.get([parse_id(asked)])
        if not found:
            raise not_found(asked, self.settings.history_seconds)
        job = found[0]
        if self._sealing is not None:
            job.opener = self._sealing
        return job if isinstance(job_id, str) else self._typed(job)

    @overload
    async def result(self, job_id: Job[R], timeout: float | None = None) -> R: ...
    @overload
    async def result(self, job_id: str, timeout: float | None = None) -> Any: ...

    async def result(self, job_id: str | Job, timeout: float | None = None) -> Any:
        """Wait for a job and answer what its handler returned: for a job as its task says that it
        returns it, for an id as plain JSON.
        """
        asked, job_id = job_id, job_id if isinstance(job_id, str) else job_id.id
        await self.open()
        try:
            job = await self._results.finished(parse_id(job_id), timeout)
        except TimeoutError:
            raise ResultTimeout(
                f"job {job_id} has not finished within {timeout:g} s; it goes on"
            ) from None
        if self._sealing is not None:
            job.opener = self._sealing
        if job.status is not Status.COMPLETED:
            reason = job.error_message or "no reason kept"
            raise JobFailed(f"job {job_id} ended as {job.status}: {reason}")
        try:
            return job.result if isinstance(asked, str) else self._typed(job).result
        except msgspec.DecodeError as error:
            raise InvalidInput(
                f'job {job_id}: its result does not fit what task "{job.task}" says that it '
                f"returns: {error}; correct either, or ask for it by the job's id"
            ) from None

    def _typed(self, job: Job) -> Job:
        """Let a job read its result as its task returns it, if that task is known here."""
        task = self.tasks.get(job.task)
        if task is not None:
            job.result_decoder = decoder_of_results(task).decode
        return job

    # -- what is sealed ------------------------------------------------------------------------

    def _openable(self, job: Job[R]) -> Job[R]:
        """Let a job open what is sealed of it, when that is asked for, if there are keys here."""
        if self._sealing is not None:
            job.opener = self._sealing
        return job

    async def _sealed_event(self, job_id: str, event: str, body: bytes) -> bytes:
        """Return the value of an event as it is stored with a job: sealed, if the job is."""
        for job in await self._engine.get([job_id]):
            task = self.tasks.get(job.task)
            if key_of_args(job.args_json) is None and (task is None or not task.encrypted):
                continue
            if self.sealing is None:
                raise MissingEncryptionKey(
                    f"event {event!r}: job {job_id} is encrypted, but this process has no "
                    "encryption keys; give it some: HEADRACE_ENCRYPTION_KEYS or "
                    "HEADRACE_ENCRYPTION_KEY_FILE"
                )
            return self.sealing.event(job_id, event, body)
        return body
