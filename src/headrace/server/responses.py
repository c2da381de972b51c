"""Responses: JSON made by msgspec, in the shape that `--json` prints."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from headrace.api_types.job import JobBody
from headrace.api_types.responses import EntryView
from headrace.encryption.views import shown_entry, shown_job
from headrace.engine.base import Viewing
from headrace.engine.bounded_reads import parts
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry, Failure
from headrace.model.sealed import MARK
from headrace.task.redact import HIDDEN, Redactor, without
from headrace.workflows.steps import RunView

if TYPE_CHECKING:
    from headrace.encryption import Sealing

JSON = "application/json"


class Answers:
    """Makes bodies of responses, without the values of hidden fields. What is sealed is opened only
    with `sealing`: otherwise it is told which key it is sealed with.
    """

    def __init__(self, redactor: Redactor, sealing: Sealing | None = None) -> None:
        self.redactor = redactor
        self.sealing = sealing

    def opened(self, job: Job) -> Job:
        """Return a job with its sealed values as this server shows them."""
        return shown_job(job, self.sealing)

    def seen(self, job: Job) -> Job:
        """Return a job without the values of hidden fields, apart from its attempts."""
        redactor = self.redactor
        if MARK in job.args_json or (job.result_json and MARK in job.result_json):
            job = self.opened(job)
        documents = (job.args_json, job.result_json, job.meta_json)
        if not any(document and redactor.may_hide(document) for document in documents):
            return job
        args, result, meta = documents
        return msgspec.structs.replace(
            job,
            args_json=redactor.json(args),
            result_json=result and redactor.json(result),
            meta_json=meta and redactor.json(meta),
            error=job.error and redactor.text(job.error, *documents),
            message=job.message and redactor.text(job.message, *documents),
        )

    def job(self, job: Job) -> JobBody:
        """Return a job as callers see it."""
        if MARK in job.args_json or (job.result_json and MARK in job.result_json) or job.log:
            job = self.opened(job)
        shown = self.seen(job)
        body = JobBody.of(shown)
        if shown is not job:
            # Once for all attempts: documents may be long, and attempts many.
            secrets = self.redactor.secrets(job.args_json, job.result_json, job.meta_json)
            body.log = [_attempt(each, secrets) for each in body.log]
        return body

    async def clean(self, engine: Viewing, brief: Sequence[Job]) -> list[Job]:
        """Return brief jobs as callers may see them. What is hidden in their texts is known from
        their arguments, so those that have texts are read whole.
        """
        ids = [job.id for job in brief if job.error or job.message]
        if not ids or not self.redactor.fields:
            return list(brief)
        whole = {job.id: self.seen(job) async for some in parts(engine, ids) for job in some}
        for job in brief:
            if job.error or job.message:
                # It may be gone by now, or be another one than that of the list.
                read = whole.get(job.id)
                job.error, job.message = (read.error, read.message) if read else (None, None)
        return list(brief)

    def error(self, job: Job) -> str:
        """Return what a job failed with, or "". The job has to be whole: its arguments say what is
        to be hidden.
        """
        job = self.opened(job)
        documents = (job.args_json, job.result_json, job.meta_json)
        return self.redactor.text(job.error or "", *documents)

    def run(self, job: Job, view: RunView) -> RunView:
        """Return a run of a workflow as callers see it. What a step says may be of the parameters
        of the run, or of what another step returned.
        """
        value, text = self.redactor.value, self.redactor.text
        job = self.opened(job)
        documents = [job.args_json, job.result_json]
        if view.error or any(step.error for step in view.steps):
            outputs = [step.output for step in view.steps if step.output is not None]
            documents.append(msgspec.json.encode(outputs))
        return msgspec.structs.replace(
            view,
            params=value(view.params),
            result=value(view.result),
            error=view.error and text(view.error, *documents),
            steps=[
                msgspec.structs.replace(
                    step,
                    output=value(step.output),
                    error=step.error and text(step.error, *documents),
                )
                for step in view.steps
            ],
        )

    def message(self, raw: bytes) -> bytes:
        """Return a message of a broker without the values of hidden fields. One that is no JSON, or
        was cut, may be half of a document: what looks like such a field is hidden in it.
        """
        if not self.redactor.may_hide(raw):
            return raw
        try:
            return self.redactor.json(raw)
        except (msgspec.DecodeError, RecursionError):
            return self._field.sub(rb'\1"' + HIDDEN.encode() + b'"', raw)

    def reason(self, reason: str, raw: bytes) -> str:
        """Return why a message made no job, without what is hidden in the message."""
        if not self.redactor.may_hide(raw):
            return reason
        try:
            return self.redactor.text(reason, raw)
        except (msgspec.DecodeError, ValueError, RecursionError):
            # No document: nobody knows its values, but the reason may quote its fields.
            return self.message(reason.encode("utf-8", "replace")).decode("utf-8", "replace")

    @functools.cached_property
    def _field(self) -> re.Pattern[bytes]:
        names = "|".join(re.escape(field) for field in sorted(self.redactor.fields))
        # Of a list or an object nobody knows where it ends: the rest is hidden.
        values = r"""[\[{].*|"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|[^\s,;&}\]]+"""
        pattern = rf"""((?:{names})["']?\s*[:=]\s*)(?:{values})"""
        return re.compile(pattern.encode(), re.IGNORECASE | re.DOTALL)

    def data(self, job: Job) -> bytes:
        """Return a job as the data of an event."""
        return msgspec.json.encode(self.job(job))

    def jobs(self, jobs: Iterable[Job]) -> list[JobBody]:
        """Return several jobs."""
        return [self.job(job) for job in jobs]

    def entry(self, job_id: str, entry: StoredEntry) -> EntryView:
        """Return an entry of a job."""
        entry = shown_entry(job_id, entry, self.sealing)
        body = msgspec.Raw(self.redactor.json(entry.body))
        return EntryView(
            kind=entry.kind, name=entry.name, body=body, token=entry.token, at=entry.at
        )


def _attempt(entry: AttemptEntry, secrets: Sequence[str]) -> AttemptEntry:
    failure = entry.failure
    if failure is None:
        return entry
    clean = Failure(
        failure.type,
        without(failure.message, secrets),
        failure.traceback and without(failure.traceback, secrets),
    )
    return msgspec.structs.replace(entry, failure=clean)


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(msgspec.json.encode(document), status, headers, JSON)


def listed(noun: str, items: Iterable[Any], cursor: str | None = None, **more: Any) -> Response:
    """Return a page of a list."""
    return answer({noun: list(items), "cursor": cursor, **more})
