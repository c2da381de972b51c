"""One job for its page: what is short at each look, what is long only when it has changed.

A page looks twice a second. Arguments of ten megabytes, thousands of stages and the audit log are
read again only if the job has moved on, or after some seconds; of them only what is shown is kept.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from headrace.api_types.responses import AuditEntry
from headrace.artifacts.index import KIND as ARTIFACT
from headrace.artifacts.index import read_entries, read_handed_in
from headrace.encryption.views import shown_entry
from headrace.errors import InvalidInput, JobNotFound
from headrace.model.artifact import Artifact
from headrace.model.durable.entries import STAGE, StageRecord
from headrace.model.durable.writes import StoredEntry
from headrace.model.ids import parse_id
from headrace.model.job import Job, JobFilter
from headrace.model.outcome import AttemptEntry
from headrace.monitor.timeline import attempts_of
from headrace.server.auth.audit_pages import AuditFilter
from headrace.server.dashboard.jobs.json_tree import JsonDocument, tree
from headrace.server.dashboard.visit import Visit
from headrace.server.service import Service
from headrace.task.redact import Redactor, without
from headrace.workflows.run import TASK as RUN

T = TypeVar("T")

MOST_KEPT = 32
# What takes longer than an event loop may be kept from other things is done in a thread.
LONG = 131_072
# While a job is not finished, stages and files may come at any time.
ENTRIES_SECONDS = 2.0
AUDIT_SECONDS = 10.0
SHOWN_ATTEMPTS = 5
SHOWN_ENTRIES = 20
SHOWN_FILES = 50
SHOWN_AUDIT = 20
ENTRY_BYTES = 2_048
TRACEBACK = 6_000
MESSAGE = 2_000


class ShownEntry(msgspec.Struct, frozen=True):
    """A stage or another entry; `tree` None: its value is too large to be shown with others."""

    kind: str
    name: str
    at: Any
    size: int
    tree: Any
    record: StageRecord | None


class JobDetails:
    """What is long about a job, as one who may see it sees it."""

    def __init__(self, job: Job, redactor: Redactor) -> None:
        self.secrets: list[str] = []

        def document(encoded: bytes) -> JsonDocument:
            clean, secrets = redactor.clean(encoded)
            self.secrets += secrets
            return JsonDocument(clean)

        self.error = job.error
        self.args = document(job.args_json)
        self.result = None if job.result_json is None else document(job.result_json)
        found = None if job.meta_json is None else document(job.meta_json)
        meta = job.meta if job.meta_json else {}
        self.meta = found if meta else None
        self.copy_of = meta.get("copy_of") if isinstance(meta.get("copy_of"), str) else None
        self.handed_in = read_handed_in(job.id, meta, job.created_at)
        self.log = job.log
        first, omitted, last = attempts_of(job)
        both = [*first, *last]
        shown = both if len(both) <= 2 * SHOWN_ATTEMPTS else both[-SHOWN_ATTEMPTS:]
        early = [] if shown is both else both[:SHOWN_ATTEMPTS]
        self.omitted = omitted + len(both) - len(shown) - len(early)
        # The newest first: that is what somebody looks for.
        self.attempts = [self._clean(each) for each in reversed(shown)]
        self.first_attempts = [self._clean(each) for each in reversed(early)]
        self.read_at = self.audit_at = float("-inf")
        self.entries: list[ShownEntry] = []
        self.stages: list[str] = []
        self.slim: list[StoredEntry] = []
        self.more_entries = 0
        self.files: list[Artifact] = []
        self.more_files = 0
        self.audit: list[AuditEntry] = []

    def text(self, text: str) -> str:
        """Return a text without what is hidden in the arguments."""
        return without(text, self.secrets)

    def _clean(self, entry: AttemptEntry) -> AttemptEntry:
        failure = entry.failure
        if failure is None:
            return entry
        trace = self.text(failure.traceback or "")
        if len(trace) > TRACEBACK:  # the cause is at its end, the way there at its beginning
            trace = f"{trace[: TRACEBACK // 3]}\n…\n{trace[-TRACEBACK * 2 // 3 :]}"
        message = self.text(failure.message)
        clean = msgspec.structs.replace(
            failure,
            message=message if len(message) <= MESSAGE else f"{message[:MESSAGE]}…",
            traceback=trace or None,
        )
        return msgspec.structs.replace(entry, failure=clean)

    def take(self, entries: Sequence[StoredEntry], redactor: Redactor) -> None:
        """Keep of the entries what is shown."""
        files = self.handed_in | read_entries(each for each in entries if each.kind == ARTIFACT)
        found = list(files.values())
        self.files, self.more_files = found[:SHOWN_FILES], len(found[SHOWN_FILES:])
        steps = [each for each in entries if each.kind != ARTIFACT]
        shown = steps if len(steps) <= 2 * SHOWN_ENTRIES else steps[-SHOWN_ENTRIES:]
        early = [] if shown is steps else steps[:SHOWN_ENTRIES]
        self.more_entries = len(steps) - len(shown) - len(early)
        self.entries = [_shown(each, redactor) for each in [*early, *shown]]
        self.stages = [each.name for each in steps if each.kind == STAGE][-200:]
        self.slim = [_slim(each) for each in steps]


class JobDetailsCache:
    """Details of the jobs that are looked at."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept: dict[tuple[Any, ...], JobDetails] = {}

    def forget(self) -> None:
        """Read anew for the next who looks."""
        self._kept.clear()

    async def brief(self, visit: Visit, job_id: str) -> Job:
        """Return a job without its documents and its log, if this caller may see it."""
        job_id = parse_id(job_id)
        await visit.app.open()
        # The newest one that is not newer: lists are read without what is long.
        above = str(uuid.UUID(int=min(uuid.UUID(job_id).int + 1, (1 << 128) - 1)))
        page = await visit.app.engine.list_jobs(JobFilter(), cursor=above, limit=1, brief=True)
        found = page.jobs[0] if page.jobs and page.jobs[0].id == job_id else None
        # For a key for some queues a run has to be read whole: its steps say whether it is for it.
        if found is not None and not (visit.caller.queues and found.task == RUN):
            return visit.reach.shown(found)
        return await visit.job(job_id)

    async def brief_or_none(self, visit: Visit, job_id: str | None) -> Job | None:
        """Return a job that another one names; None if it is gone, or not for this caller."""
        try:
            return None if job_id is None else await self.brief(visit, job_id)
        except (JobNotFound, InvalidInput):
            return None

    async def get(self, job: Job) -> JobDetails:
        """Return what is long about a job."""
        key = (job.id, job.token, job.state, job.completed_at)
        details = self._kept.pop(key, None)
        if details is None:
            details = await self._read(job)
        self._kept[key] = details
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        age = time.monotonic() - details.read_at
        if age > ENTRIES_SECONDS and (not job.status.final or details.read_at < 0):
            sealing = self._service.answers.sealing
            stored = await self._service.app.engine.entries(job.id)
            entries = [shown_entry(job.id, each, sealing) for each in stored]
            size = sum(len(each.body) for each in entries)
            await _done(size, details.take, entries, self._service.answers.redactor)
            details.read_at = time.monotonic()
        return details

    async def audit(self, job: Job, details: JobDetails) -> Sequence[AuditEntry]:
        """Return who changed this job."""
        if time.monotonic() - details.audit_at > AUDIT_SECONDS:
            wanted = AuditFilter(target=job.id, since=job.created_at - timedelta(minutes=1))
            page = await self._service.audit.read(wanted, cursor=None, limit=SHOWN_AUDIT)
            details.audit, details.audit_at = page.entries, time.monotonic()
        return details.audit

    async def _read(self, job: Job) -> JobDetails:
        found = await self._service.app.engine.get([job.id])
        if not found:
            raise JobNotFound(f"no job has the id {job.id}; it was pruned just now")
        whole = self._service.answers.opened(found[0])
        size = len(whole.args_json) + len(whole.result_json or b"") + len(whole.log)
        return await _done(size, JobDetails, whole, self._service.answers.redactor)


async def _done(size: int, work: Callable[..., T], *given: Any) -> T:
    return work(*given) if size < LONG else await asyncio.to_thread(work, *given)


def _shown(entry: StoredEntry, redactor: Redactor) -> ShownEntry:
    record = None
    body = entry.body
    if entry.kind == STAGE:
        try:
            record = msgspec.json.decode(body, type=StageRecord)
            body = bytes(record.value)
        except msgspec.MsgspecError:
            record = None
    made = tree(redactor.json(body)) if len(body) <= ENTRY_BYTES else None
    if record is not None:
        record.value = msgspec.Raw(b"null")
    return ShownEntry(entry.kind, entry.name, entry.at, len(body), made, record)


def _slim(entry: StoredEntry) -> StoredEntry:
    """Return an entry without the value of its stage, for the timeline."""
    if len(entry.body) <= ENTRY_BYTES:
        return entry
    try:
        record = msgspec.json.decode(entry.body, type=StageRecord)
    except msgspec.MsgspecError:
        return msgspec.structs.replace(entry, body=b"null")
    record.value = msgspec.Raw(b"null")
    return msgspec.structs.replace(entry, body=msgspec.json.encode(record))
