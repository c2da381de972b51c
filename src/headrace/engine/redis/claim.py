"""Jobs as a worker needs them, from what scripts tell about those that were leased to it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from headrace.engine.redis.codec import ASKED, StoredJob, decode_body, read_record
from headrace.model.job import ClaimedJob

_SIZE = struct.Struct("<I")


def claimed_in(answer: Sequence[bytes], first: int = 0) -> list[ClaimedJob]:
    """Jobs as a worker needs them, from id, record and body of each in turn."""
    return [
        claimed(answer[n], read_record(answer[n + 1]), answer[n + 2])
        for n in range(first, len(answer), 3)
    ]


def handed_over(message: bytes) -> tuple[str, ClaimedJob]:
    """A worker and its job, from what the script `insert_one` publishes."""
    (size,) = _SIZE.unpack_from(message)
    end = _SIZE.size + size
    told = message[_SIZE.size : end].decode().split("\0")
    worker_id, job_id, priority, queue, _, task, key, _ = told
    body = decode_body(message[end:])
    return worker_id, ClaimedJob(
        id=job_id,
        token=1,
        attempt=1,
        task=task,
        queue=queue,
        args=body.args,
        max_attempts=body.max_attempts,
        timeout=body.timeout,
        on_crash="fail" if body.fails_on_crash else "retry",
        priority=int(priority),
        key=key or None,
        meta=body.meta,
    )


def claimed(job_id: bytes, record: StoredJob, packed: bytes) -> ClaimedJob:
    """One job as a worker needs it."""
    body = decode_body(packed)
    job = ClaimedJob(
        id=job_id.decode(),
        token=record.token,
        attempt=record.attempt,
        task=record.task,
        queue=record.queue,
        args=body.args,
        max_attempts=body.max_attempts,
        timeout=body.timeout,
        on_crash="fail" if body.fails_on_crash else "retry",
        priority=record.priority,
        lane=record.lane or None,
        key=record.key or None,
        meta=body.meta,
        wait=max(0.0, record.started - record.run_at),
        cancel_requested=bool(record.flags & ASKED),
    )
    if record.parent:
        # Not named above: Python calls with more than fifteen names in another, slower way.
        job.parent = record.parent
    return job
