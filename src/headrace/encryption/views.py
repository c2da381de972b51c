"""Sealed values as people see them: told to be sealed, or opened for those who may see them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import SealedValue
from headrace.model.durable.awaited import EVENT
from headrace.model.durable.entries import STAGE, StageRecord
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.sealed import (
    DOCUMENT,
    MARK,
    RUN,
    SEALED_ERROR,
    is_sealed,
    shown_document,
    shown_text,
)

if TYPE_CHECKING:
    from headrace.encryption.sealing import Sealing


def shown_job(job: Job, sealing: Sealing | None) -> Job:
    """Return a job for a view. With `sealing` all is open that its keys open; without it, and
    where a key is missing, the view tells which key a value is sealed with.
    """
    sealed = job.args_json.startswith((DOCUMENT, RUN)) or is_sealed(job.result_json)
    if not sealed and MARK not in job.log:
        return job
    if sealing is not None:
        job = _opened(job, sealing)
    result = job.result_json
    return msgspec.structs.replace(
        job,
        args_json=shown_document(job.args_json),
        result_json=None if result is None else shown_document(result),
        opener=None,
    )


def _opened(job: Job, sealing: Sealing) -> Job:
    job = msgspec.structs.replace(job, opener=sealing)
    # Each by itself: their keys may differ.
    with contextlib.suppress(SealedValue):
        job.args_json = sealing.open_args(job.id, job.args_json)
    if job.result_json is not None:
        with contextlib.suppress(SealedValue):
            job.result_json = sealing.open_result(job.id, job.result_json)
    if job.error == SEALED_ERROR:
        job.error = job.error_message
    job.log = b"\n".join(map(msgspec.json.encode, job.attempts))
    return job


def shown_entry(job_id: str, entry: StoredEntry, sealing: Sealing | None) -> StoredEntry:
    """Return an entry of a job for a view, in the same way."""
    if MARK not in entry.body:
        return entry
    if entry.kind == EVENT:
        body = entry.body
        if sealing is not None:
            with contextlib.suppress(SealedValue):
                body = sealing.open_event(job_id, entry.name, body)
        return msgspec.structs.replace(entry, body=shown_document(body))
    return _shown_stage(job_id, entry, sealing) if entry.kind == STAGE else entry


def _shown_stage(job_id: str, entry: StoredEntry, sealing: Sealing | None) -> StoredEntry:
    try:
        record = msgspec.json.decode(entry.body, type=StageRecord)
    except msgspec.DecodeError:
        return entry
    if record.sealed is None:
        return entry
    shown = shown_text(record.sealed)
    if sealing is not None:
        with contextlib.suppress(SealedValue):
            record.value = msgspec.Raw(sealing.open_stage(job_id, entry.name, record.sealed))
            shown = ""
    record.sealed = shown or None
    return msgspec.structs.replace(entry, body=msgspec.json.encode(record))
