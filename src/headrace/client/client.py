"""Client: the verbs of an App, over HTTP."""

from __future__ import annotations

import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, Unpack
from urllib.parse import quote

import msgspec

from headrace.api_types.job import BatchAnswer
from headrace.api_types.requests import (
    CancelRequest,
    CopyRequest,
    JobRequest,
    RetryRequest,
)
from headrace.api_types.responses import Delivered, EntryView, JobResult, Reasons
from headrace.batching import batched, each
from headrace.client.alerts import AlertsApi
from headrace.client.base import given
from headrace.client.cluster import ClusterApi
from headrace.client.files import File, FileApi, form_fields, read_files
from headrace.client.job_codec import (
    JobOptions,
    decode,
    decode_job,
    make_request,
)
from headrace.client.limits.breakers import BreakersApi
from headrace.client.limits.rates import RatesApi
from headrace.client.many_jobs import ManyJobsApi
from headrace.client.publishing import PublishingApi
from headrace.client.request import Request
from headrace.client.sse import follow
from headrace.errors import (
    HeadraceError,
    InvalidArguments,
    InvalidSetting,
    JobFailed,
    ResultTimeout,
)
from headrace.model.durable.writes import StoredEntry
from headrace.model.ids import parse_id
from headrace.model.job import Job
from headrace.model.names import check_text
from headrace.model.views import Delivery
from headrace.task.codec import encode

OnProgress = Callable[[int], None]

# How long one request waits for a result on the server; it is repeated until there is one.
LONGEST_POLL = 30.0
SHORTEST_POLL = 0.1
# A server takes at most 1,000 jobs and 4 MiB in one request; some room is left for the rest of it.
BATCH_JOBS = 1_000
BATCH_BYTES = 3 * 1_048_576


class Client(FileApi, ManyJobsApi, ClusterApi, PublishingApi, AlertsApi, RatesApi, BreakersApi):
    """Jobs on a remote server. The verbs and their errors are those of an App.

    `url` and `api_key` not given: API_URL and HEADRACE_API_KEY, then the server on this machine.
    Nothing is connected until the first verb; connections stay open. Requests that read, and those
    that carry a key, are tried again `retries` times while the server is away.
    """

    # -- enqueue -------------------------------------------------------------------------------

    def job(
        self, name: str, args: Mapping[str, Any] | None = None, **options: Unpack[JobOptions]
    ) -> JobRequest:
        """Make a job without sending it, for `enqueue_many`."""
        return make_request(name, args, options)

    async def enqueue(
        self,
        name: str | JobRequest,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Enqueue a job by task name. The options are those of `job`.

        `files` go with it: each is stored as an artifact, and the argument of its name is its path.
        With a key the request is sent again while the server is away; without one it is not, since
        the first may have arrived.
        """
        job, _ = await self.enqueue_or_find(name, args, files=files, **options)
        return job

    async def enqueue_or_find(
        self,
        name: str | JobRequest,
        args: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, File] | None = None,
        **options: Unpack[JobOptions],
    ) -> tuple[Job, bool]:
        """The same, and whether the job is new: False if one with its key was there already."""
        if not isinstance(name, JobRequest):
            request = self.job(name, args, **options)
        elif args is None and not options:
            request = name
        else:
            raise InvalidSetting(
                "a job made by `job` has its arguments and options; give no others"
            )
        # With other policies a key is no promise: the first may have started meanwhile.
        once = request.key is not None and request.on_duplicate in (None, "return")
        asked = Request(method="POST", path="/jobs", idempotent=once)
        if files:
            asked.files, asked.fields = await read_files(files), form_fields(request)
        else:
            asked.body = msgspec.json.encode(request)
        response = await self._transport.send(asked)
        return decode_job(response.content), response.status != 200

    async def enqueue_many(
        self,
        jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
        *,
        on_progress: OnProgress | None = None,
    ) -> list[Job]:
        """Enqueue any number of jobs in order, in bounded requests.

        Each request is stored whole or not at all. If one fails, those before it are stored: a
        note on the error says how many jobs that was.
        """
        answers = await self.enqueue_or_find_many(jobs, on_progress=on_progress)
        return [job for job, _ in answers]

    async def enqueue_or_find_many(
        self,
        jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
        *,
        on_progress: OnProgress | None = None,
    ) -> list[tuple[Job, bool]]:
        """The same, and for each whether it is new: False if one with its key was there already."""
        answers: list[tuple[Job, bool]] = []
        lifetime = self._transport.lifetime
        async for asked in _batches(jobs):
            try:
                response = await self._transport.send(asked, lifetime)
            except HeadraceError as error:
                error.add_note(f"{len(answers)} jobs of this call were stored before the error")
                raise
            stored = decode(response.content, BatchAnswer, "the answer to a batch")
            answers += [
                (job.to_job(), created)
                for job, created in zip(stored.jobs, stored.created, strict=True)
            ]
            if on_progress is not None:
                on_progress(len(answers))
        return answers

    # -- one job -------------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job:
        """One job, with its status, stage, progress, attempt, error and result."""
        return decode_job(await self._content(f"/jobs/{parse_id(job_id)}"))

    async def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Wait for a job and return what its handler returned."""
        end = None if timeout is None else time.monotonic() + timeout
        path = f"/jobs/{parse_id(job_id)}/result"
        lifetime = self._transport.lifetime
        while True:
            left = LONGEST_POLL if end is None else max(end - time.monotonic(), 0.0)
            hold = min(left, LONGEST_POLL)
            asked = time.monotonic()
            response = await self._transport.send(
                Request(
                    method="GET",
                    path=path,
                    params={"timeout": f"{hold:.3f}"},
                    idempotent=True,
                    read_timeout=hold + self._timeout,
                    conflict_error=JobFailed,
                ),
                lifetime,
            )
            if response.status != 202:
                return decode(response.content, JobResult, "a result").result
            if asked + hold > time.monotonic():
                # The response was early, as when the job is retried: do not poll without a pause.
                await lifetime.pause(min(hold, SHORTEST_POLL))
            if end is not None and time.monotonic() >= end:
                raise ResultTimeout(
                    f"job {job_id} has not finished within {timeout:g} s; it goes on"
                )

    async def cancel(self, job_id: str, reason: str = "cancelled") -> Job:
        """Cancel a job: at once, or as soon as its running handler has stopped."""
        return await self._change_job(
            f"/jobs/{parse_id(job_id)}/cancel", CancelRequest(reason=reason)
        )

    async def retry(self, job_id: str, *, from_stage: str | None = None) -> Job:
        """Run a finished job again, from a stage on if one is given; or a scheduled one now."""
        asked = RetryRequest(from_stage=from_stage)
        return await self._change_job(f"/jobs/{parse_id(job_id)}/retry", asked)

    async def copy(
        self,
        job_id: str,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """Enqueue a new job with the task, queue, priority and arguments of another, some of which
        may differ. Arguments whose values the server hides have to be given again.
        """
        made = msgspec.structs.asdict(make_request("copy", args, options))
        del made["task"]
        return await self._change_job(f"/jobs/{parse_id(job_id)}/copy", CopyRequest(**made))

    async def signal(self, job_id: str, event: str, value: Any = None) -> Delivery:
        """Deliver an event to a job that waits for it, or will. The first of a name counts."""
        path = f"/jobs/{parse_id(job_id)}/events/{quote(check_text('event', event), safe='')}"
        response = await self._transport.send(
            Request(method="POST", path=path, body=_encode(event, value), idempotent=True)
        )
        return decode(response.content, Delivered, "a delivery").delivery

    async def why(self, job_id: str) -> Sequence[str]:
        """Why is it not running? In sentences."""
        path = f"/jobs/{parse_id(job_id)}/why"
        return (await self._get(path, Reasons, "a list of reasons")).reasons

    async def entries(self, job_id: str) -> Sequence[StoredEntry]:
        """The entries of a job: stages and the like, in the order they were first written."""
        found = await self._list(f"/jobs/{parse_id(job_id)}/entries", "entries", EntryView)
        return [
            StoredEntry(entry.kind, entry.name, bytes(entry.body), entry.token, entry.at)
            for entry in found
        ]

    async def events(
        self,
        job_id: str | None = None,
        *,
        task: str | None = None,
        queue: str | None = None,
        on_gap: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Job, None]:
        """Each change of one job, until it is finished; or of all jobs, for ever.

        Goes on over lost connections, after the last change that arrived. Of all jobs a server
        remembers only so many changes: `on_gap` is called when some were missed.
        """
        if job_id is not None and (task is not None or queue is not None):
            raise InvalidSetting("task and queue choose among all jobs; leave them out with an id")
        path = "/events" if job_id is None else f"/jobs/{parse_id(job_id)}/events"
        params = given(task=task, queue=queue)
        asked = Request(method="GET", path=path, params=params, idempotent=True)
        async for event in follow(self._transport, asked, retries=self._retries):
            if event.kind == "gap" and on_gap is not None:
                on_gap()
            if event.kind != "job":
                continue
            job = decode_job(event.data)
            yield job
            if job_id is not None and job.status.final:
                return


async def _batches(
    jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
) -> AsyncIterator[Request]:
    """Put jobs together in requests of bounded size; a large one travels alone. If all its jobs
    have keys, a request may be sent twice.
    """
    encoded = ((msgspec.json.encode(job), job.key is not None) async for job in each(jobs))
    async for batch in batched(
        encoded, lambda part: len(part[0]), length=BATCH_JOBS, size=BATCH_BYTES
    ):
        body = b'{"jobs":[' + b",".join(part for part, _ in batch) + b"]}"
        keyed = all(has_key for _, has_key in batch)
        yield Request(method="POST", path="/jobs/batch", body=body, idempotent=keyed)


def _encode(event: str, value: Any) -> bytes:
    try:
        return encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArguments(f"event {event!r}: {error}; pass plain data") from None
