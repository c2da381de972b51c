"""Answers: JSON made by msgspec, in the shape that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from starlette.responses import Response

from headrace.model.durable.awaited import Awaited
from headrace.model.durable.entries import StageView
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry, Failure
from headrace.server.auth.redact import Redactor

JSON = "application/json"
NULL = msgspec.Raw(b"null")
EMPTY = msgspec.Raw(b"{}")


class JobBody(msgspec.Struct, gc=False):
    """`Job.to_dict` as JSON, with the documents inside taken over as they were stored."""

    job_id: str
    task: str
    queue: str
    status: str
    args: msgspec.Raw
    priority: int
    lane: str | None
    width: int | None
    key: str | None
    source: str
    attempt: int
    max_attempts: int
    timeout: float | None
    on_crash: str
    stage: str | None
    progress: float
    message: str | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    worker: str | None
    error_type: str | None
    error_message: str | None
    result: msgspec.Raw
    cancel_requested: bool
    attempts: list[AttemptEntry]
    meta: msgspec.Raw
    parent: str | None
    group: str | None
    awaits: tuple[Awaited, ...]
    # Only where one job is shown: each costs a look of its own.
    stages: list[StageView] | msgspec.UnsetType = msgspec.UNSET


class Answers:
    """Makes answers, without the values of fields that are to be hidden."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def job(self, job: Job) -> JobBody:
        """A job as callers see it."""
        redactor = self.redactor
        documents = (job.args_json, job.result_json, job.meta_json)
        args, result, meta = documents
        error, message = job.error, job.message
        attempts = job.attempts if job.log else []
        if any(document and redactor.may_hide(document) for document in documents):
            args = redactor.json(job.args_json)
            result = result and redactor.json(result)
            meta = meta and redactor.json(meta)
            error = error and redactor.text(error, *documents)
            message = message and redactor.text(message, *documents)
            attempts = [self._attempt(each, documents) for each in attempts]
        return JobBody(
            job.id,
            job.task,
            job.queue,
            job.status.value,
            msgspec.Raw(args),
            job.priority,
            job.lane,
            None if job.lane is None else job.width,
            job.key,
            job.source,
            job.attempt,
            job.max_attempts,
            job.timeout,
            job.on_crash,
            job.stage,
            job.progress,
            message,
            job.created_at,
            job.run_at,
            job.started_at,
            job.completed_at,
            job.worker,
            job.error_type,
            error,
            NULL if result is None else msgspec.Raw(result),
            job.cancel_requested,
            attempts,
            msgspec.Raw(meta) if meta else EMPTY,
            job.parent,
            job.group,
            job.awaits,
        )

    def data(self, job: Job) -> bytes:
        """A job as the data of an event."""
        return msgspec.json.encode(self.job(job))

    def jobs(self, jobs: Iterable[Job]) -> list[JobBody]:
        """Several jobs."""
        return [self.job(job) for job in jobs]

    def entry(self, entry: StoredEntry) -> dict[str, Any]:
        """Something kept with a job."""
        return {
            "kind": entry.kind,
            "name": entry.name,
            "body": msgspec.Raw(self.redactor.json(entry.body)),
            "token": entry.token,
            "at": entry.at,
        }

    def _attempt(self, entry: AttemptEntry, documents: tuple[bytes | None, ...]) -> AttemptEntry:
        failure = entry.failure
        if failure is None:
            return entry
        hide = self.redactor.text
        clean = Failure(
            failure.type,
            hide(failure.message, *documents),
            failure.traceback and hide(failure.traceback, *documents),
        )
        return msgspec.structs.replace(entry, failure=clean)


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(document), status, headers, JSON)


def listed(noun: str, items: Iterable[Any], cursor: str | None = None) -> Response:
    """A page of a list."""
    return answer({noun: list(items), "cursor": cursor})
