"""Any number of jobs as requests of bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable

import msgspec

from headrace.api_types.requests import JobRequest

# A server takes at most 1,000 jobs and 4 MiB in one request; some room is left for the rest of it.
BATCH_JOBS = 1_000
BATCH_BYTES = 3 * 1_048_576


class RequestBatch(msgspec.Struct, frozen=True):
    """The body of one request. If all its jobs have keys, it may be sent twice."""

    body: bytes
    idempotent: bool


async def batches(
    jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
) -> AsyncIterator[RequestBatch]:
    """Read jobs one by one and put them together; a large one travels alone."""
    parts: list[bytes] = []
    size, idempotent = 0, True
    async for job in _each(jobs):
        encoded = msgspec.json.encode(job)
        if parts and (len(parts) == BATCH_JOBS or size + len(encoded) > BATCH_BYTES):
            yield _joined(parts, idempotent)
            parts, size, idempotent = [], 0, True
        parts.append(encoded)
        size += len(encoded)
        idempotent = idempotent and job.key is not None
    if parts:
        yield _joined(parts, idempotent)


def _joined(parts: list[bytes], idempotent: bool) -> RequestBatch:
    return RequestBatch(b'{"jobs":[' + b",".join(parts) + b"]}", idempotent)


async def _each(
    jobs: Iterable[JobRequest] | AsyncIterable[JobRequest],
) -> AsyncIterator[JobRequest]:
    if isinstance(jobs, AsyncIterable):
        async for job in jobs:
            yield job
    else:
        for job in jobs:
            yield job
