"""Any number of jobs as requests of bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable

import msgspec

from headrace.api_types.requests import JobRequest
from headrace.batching import batched, each

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
    encoded = ((msgspec.json.encode(job), job.key is not None) async for job in each(jobs))
    async for batch in batched(encoded, _size, length=BATCH_JOBS, size=BATCH_BYTES):
        body = b'{"jobs":[' + b",".join(part for part, _ in batch) + b"]}"
        yield RequestBatch(body, all(has_key for _, has_key in batch))


def _size(part: tuple[bytes, bool]) -> int:
    return len(part[0])
