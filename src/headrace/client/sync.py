"""The verbs of a Client for code without an event loop: Django, Flask, scripts, threads.

with headrace.client.sync.Client("https://jobs.example.com") as client:
    job = client.enqueue("invoice.send", {"customer_id": 42})
    value = client.result(job.id, timeout=30)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, Unpack

from headrace.api_types.requests import JobRequest
from headrace.api_types.responses import BulkAnswer, Running, TaskView
from headrace.client.client import Client as AsyncClient
from headrace.client.client import OnProgress
from headrace.client.job_codec import JobOptions
from headrace.client.sync_admin import SyncAdministration
from headrace.client.uploads import File
from headrace.client.workflows import SyncRuns
from headrace.loop_thread import LoopThread
from headrace.model.artifact import Artifact
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.views import Delivery, JobPage, LaneView, QueueView
from headrace.model.worker import Worker

T = TypeVar("T")

WOULD_BLOCK = "this would block the event loop; use headrace.Client and `await` here"


class SyncClient(SyncAdministration, SyncRuns):
    """A Client whose verbs block. `.client` is the ordinary Client behind it.

    Any number of threads may share it: they share its connections too.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 10.0,
        retries: int = 4,
    ) -> None:
        self.client = AsyncClient(url, api_key=api_key, timeout=timeout, retries=retries)
        self._admin = self._runs = self.client
        self._thread = LoopThread(
            "headrace-client", last=self.client.close, would_block=WOULD_BLOCK
        )
        self._run = self._thread.run

    def __repr__(self) -> str:
        return f"<SyncClient {self.client.url}>"

    def close(self) -> None:
        """Close every connection and end the thread. The Client can be used again. Whoever waits
        for an answer meanwhile is told by an error.
        """
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- verbs ---------------------------------------------------------------------------------

    def job(
        self, name: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> JobRequest:
        """Make a job without handing it in, for `enqueue_many`."""
        return self.client.job(name, args, **options)

    def enqueue(
        self,
        name: str | JobRequest,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Hand in a job by task name, or one made by `job`; files may go with it."""
        return self._run(self.client.enqueue(name, args, files=files, **options))

    def enqueue_or_find(
        self,
        name: str | JobRequest,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Unpack[JobOptions],
    ) -> tuple[Job, bool]:
        """The same, and whether the job is new."""
        return self._run(self.client.enqueue_or_find(name, args, files=files, **options))

    def enqueue_many(
        self, jobs: Iterable[JobRequest], *, on_progress: OnProgress | None = None
    ) -> Sequence[Job]:
        """Hand in any number of jobs in order, in bounded requests."""
        return self._run(self.client.enqueue_many(jobs, on_progress=on_progress))

    def enqueue_or_find_many(
        self, jobs: Iterable[JobRequest], *, on_progress: OnProgress | None = None
    ) -> Sequence[tuple[Job, bool]]:
        """The same, and for each whether it is new."""
        return self._run(self.client.enqueue_or_find_many(jobs, on_progress=on_progress))

    def get(self, job_id: str) -> Job:
        """One job."""
        return self._run(self.client.get(job_id))

    def list(
        self, filter: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs, newest first."""
        return self._run(self.client.list(filter, cursor=cursor, limit=limit))

    def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Wait for a job and answer what its handler returned."""
        return self._run(self.client.result(job_id, timeout))

    def cancel(self, job_id: str, reason: str = "cancelled") -> Job:
        """Cancel a job."""
        return self._run(self.client.cancel(job_id, reason))

    def retry(self, job_id: str, *, from_stage: str | None = None) -> Job:
        """Run a finished job again, from a stage on if one is given; or a scheduled one now."""
        return self._run(self.client.retry(job_id, from_stage=from_stage))

    def signal(self, job_id: str, event: str, value: Any = None) -> Delivery:
        """Deliver an event to a job that waits for it, or will."""
        return self._run(self.client.signal(job_id, event, value))

    def why(self, job_id: str) -> Sequence[str]:
        """Why is it not running? In sentences."""
        return self._run(self.client.why(job_id))

    def entries(self, job_id: str) -> Sequence[StoredEntry]:
        """What was kept with a job: stages and the like."""
        return self._run(self.client.entries(job_id))

    def artifacts(self, job_id: str) -> Sequence[Artifact]:
        """The files that a job has kept, and those that it was handed in with."""
        return self._run(self.client.artifacts(job_id))

    def download(self, job_id: str, name: str, *, layer: str = "artifacts") -> bytes:
        """The content of one file of a job."""
        return self._run(self.client.download(job_id, name, layer=layer))

    def stream(self, job_id: str, name: str, *, layer: str = "artifacts") -> Iterator[bytes]:
        """The same in chunks."""
        chunks = self.client.stream(job_id, name, layer=layer)
        try:
            while (chunk := self._run(_next(chunks))) is not None:
                yield chunk
        finally:
            self._leave(chunks)

    def download_to(
        self, job_id: str, name: str, target: Path, *, layer: str = "artifacts"
    ) -> None:
        """The same to a file, of any size. It is there whole or not at all."""
        self._run(self.client.download_to(job_id, name, target, layer=layer))

    def bulk(
        self,
        action: Literal["cancel", "retry"],
        filter: JobFilter,
        *,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> BulkAnswer:
        """Cancel or retry every job that matches; with `dry_run` only count them."""
        return self._run(self.client.bulk(action, filter, dry_run=dry_run, reason=reason))

    def events(
        self,
        job_id: str | None = None,
        *,
        task: str | None = None,
        queue: str | None = None,
        on_gap: Callable[[], None] | None = None,
    ) -> Iterator[Job]:
        """Each change of one job, until it is finished; or of all jobs, for ever."""
        changes = self.client.events(job_id, task=task, queue=queue, on_gap=on_gap)
        try:
            while (job := self._run(_next(changes))) is not None:
                yield job
        finally:
            self._leave(changes)

    def running(self) -> Running:
        """What runs now, and how many wait in each queue."""
        return self._run(self.client.running())

    def queues(self) -> Sequence[QueueView]:
        """Every queue that has been used or paused, by name."""
        return self._run(self.client.queues())

    def pause(self, queue: str) -> None:
        """Stop handing out a queue's jobs. Running ones go on."""
        self._run(self.client.pause(queue))

    def resume(self, queue: str) -> None:
        """Hand out a queue's jobs again."""
        self._run(self.client.resume(queue))

    def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]:
        """Lanes with holders or waiting jobs, the most waiting first."""
        return self._run(self.client.lanes(queue=queue, lane=lane, limit=limit))

    def workers(self) -> Sequence[Worker]:
        """Workers, alive ones first, then by name."""
        return self._run(self.client.workers())

    def metrics(self) -> str:
        """Numbers for Prometheus, as its text format has them."""
        return self._run(self.client.metrics())

    def tasks(self) -> Sequence[TaskView]:
        """The tasks that the server knows."""
        return self._run(self.client.tasks())

    def _leave(self, stream: AsyncGenerator[Any, None]) -> None:
        # After a close it has ended with its loop: do not start another for that.
        if self._thread.started:
            self._run(stream.aclose())


Client = SyncClient


async def _next(stream: AsyncGenerator[T, None]) -> T | None:
    return await anext(stream, None)
