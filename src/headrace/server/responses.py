"""Responses: JSON made by msgspec, in the shape that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from headrace.api_types.job import EMPTY, NULL, JobBody
from headrace.api_types.responses import EntryView
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry, Failure
from headrace.server.auth.redact import Redactor

JSON = "application/json"


class Answers:
    """Makes bodies of responses, without the values of hidden fields."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def job(self, job: Job) -> JobBody:
        """Return a job as callers see it."""
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
            id=job.id,
            task=job.task,
            queue=job.queue,
            state=job.status,
            args_json=msgspec.Raw(args),
            priority=job.priority,
            lane=job.lane,
            width=None if job.lane is None else job.width,
            key=job.key,
            source=job.source,
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            timeout=job.timeout,
            on_crash=job.on_crash,
            stage=job.stage,
            progress=job.progress,
            message=message,
            created_at=job.created_at,
            run_at=job.run_at,
            started_at=job.started_at,
            completed_at=job.completed_at,
            worker=job.worker,
            error_type=job.error_type,
            error=error,
            result_json=NULL if result is None else msgspec.Raw(result),
            cancel_requested=job.cancel_requested,
            log=attempts,
            meta_json=msgspec.Raw(meta) if meta else EMPTY,
            parent=job.parent,
            group=job.group,
            awaits=job.awaits,
        )

    def data(self, job: Job) -> bytes:
        """Return a job as the data of an event."""
        return msgspec.json.encode(self.job(job))

    def jobs(self, jobs: Iterable[Job]) -> list[JobBody]:
        """Return several jobs."""
        return [self.job(job) for job in jobs]

    def entry(self, entry: StoredEntry) -> EntryView:
        """Return an entry of a job."""
        body = msgspec.Raw(self.redactor.json(entry.body))
        return EntryView(
            kind=entry.kind, name=entry.name, body=body, token=entry.token, at=entry.at
        )

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
    """Return a JSON response."""
    return Response(msgspec.json.encode(document), status, headers, JSON)


def listed(noun: str, items: Iterable[Any], cursor: str | None = None) -> Response:
    """Return a page of a list."""
    return answer({noun: list(items), "cursor": cursor})
