"""Bulk actions: which jobs they are for, a preview, and the record of one that a server does.

A `cutoff`, a time of the engine, says which jobs an action is for: those that were made before it,
and for `retry` those that also finished before it. So what a preview has counted is what the action
changes, and a job that was retried and has failed again is not for it any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Literal, Protocol
from urllib.parse import urlencode

import msgspec

from headrace import job_tree
from headrace.api_types.bulk import BulkAction, BulkAnswer, BulkState, BulkView, MatchedError
from headrace.api_types.filters import filter_fields
from headrace.api_types.job import JobBody
from headrace.api_types.requests import FilterRequest
from headrace.engine.base import Engine
from headrace.engine.bounded_reads import parts, records_of
from headrace.engine.record_changes import change_record
from headrace.errors import HeadraceError, JobConflict
from headrace.model.ids import new_id, parse_id
from headrace.model.job import Job, JobFilter
from headrace.model.status import ACTIVE, Status
from headrace.model.times import moment_of
from headrace.model.views import Record
from headrace.monitor.search import Seen, brief_page, fingerprint_of

KIND = "bulk"
PREVIEW_JOBS = 10_000
PREVIEW_STEP = 1_000
BATCH = 500
LOOK = 5_000
SHOWN_IDS = 100
SAMPLES = 20
MOST_ERRORS = 50

How = Literal["", "now", "run"]


class BulkHost(Protocol):
    """What bulk actions need of an App."""

    @property
    def engine(self) -> Engine:
        """Return where the jobs live."""

    async def open(self) -> None:
        """Connect, if that has not been done."""

    async def rerun(self, jobs: Sequence[Job], *, queues: Collection[str] = ()) -> Sequence[str]:
        """Run jobs again that were not run since they were read, steps of workflows by their runs,
        with `queues` only those that use no others. Return the ids of those that were moved.
        """


class BulkNotFound(HeadraceError):
    """No bulk action has this id; old ones are deleted."""


class Pending(msgspec.Struct, array_like=True):
    """A job that is being changed, with the token that it had. `how` is `now` for a scheduled one,
    and `run` for a run of a workflow, or a job with a parent, which may be a step of one.
    """

    id: str
    token: int
    how: How = ""


class BulkRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A bulk action as it is stored. `beat` is when its `owner`, a server, was last heard of;
    `pending` are the jobs that it is changing, `walked` whether there are no others. `told` is the
    state that the audit log has. Without `runs` it leaves runs of workflows alone; `queues` are
    those of the key that asked for it, empty for all.
    """

    action: BulkAction
    filter: JobFilter
    fingerprint: str | None = None
    cutoff: datetime
    reason: str | None = None
    who: str
    key_id: str | None = None
    user: str | None = None
    queues: list[str] = []
    made_at: datetime
    state: BulkState = "running"
    matched: int = 0
    changed: int = 0
    ids: list[str] = []
    cursor: str | None = None
    pending: list[Pending] = []
    walked: bool = False
    finished_at: datetime | None = None
    error: str | None = None
    owner: str = ""
    beat: float = 0.0
    told: str = ""
    runs: bool = True

    def wanted(self) -> JobFilter:
        """Return the filter of the jobs that it is for."""
        return within(self.action, self.filter, self.cutoff)

    def view(self, bulk_id: str) -> BulkView:
        """Return what people see of it."""
        asked = filter_fields(self.filter, self.fingerprint)
        listed = filter_fields(self.wanted(), self.fingerprint)
        return BulkView(
            id=bulk_id,
            action=self.action,
            filter=msgspec.convert(asked, FilterRequest),
            cutoff=self.cutoff,
            reason=self.reason,
            who=self.who,
            made_at=self.made_at,
            state=self.state,
            # Those that are being changed may be changed already.
            matched=self.matched,
            changed=self.changed,
            ids=self.ids,
            finished_at=self.finished_at,
            error=self.error,
            jobs=f"/jobs?{urlencode(listed, doseq=True)}",
        )


_decoder = msgspec.json.Decoder(BulkRecord)


def decode(record: Record) -> BulkRecord:
    """Return the action in a record."""
    return _decoder.decode(record.body)


def within(action: BulkAction, filter: JobFilter, cutoff: datetime | None) -> JobFilter:
    """Return the filter of the jobs that an action is for. Without a status, `cancel` takes
    unfinished jobs, and `retry` failed and timed-out ones.
    """
    default = tuple(sorted(ACTIVE)) if action == "cancel" else (Status.FAILED, Status.TIMEOUT)
    statuses = filter.statuses or default
    wanted = msgspec.structs.replace(filter, statuses=statuses)
    if cutoff is None:
        return wanted
    created = min(cutoff, filter.created_before or cutoff)
    wanted = msgspec.structs.replace(wanted, created_before=created)
    if action == "retry" and all(status.final for status in statuses):
        finished = min(cutoff, filter.finished_before or cutoff)
        wanted = msgspec.structs.replace(wanted, finished_before=finished)
    return wanted


async def preview(
    engine: Engine,
    action: BulkAction,
    filter: JobFilter,
    fingerprint: str | None = None,
    *,
    cutoff: datetime | None = None,
    seen: Seen | None = None,
    runs: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> BulkAnswer:
    """Count what an action would take, by task, queue and error, among the newest 10,000. Without
    `runs` it leaves runs of workflows alone.
    """
    cutoff = await checked_cutoff(engine, cutoff)
    wanted = within(action, filter, cutoff)
    answer = BulkAnswer(matched=0, changed=0, cutoff=cutoff)
    tasks: Counter[str] = Counter()
    queues: Counter[str] = Counter()
    errors: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    samples: list[Job] = []
    cursor: str | None = None
    for _ in range(PREVIEW_JOBS // PREVIEW_STEP):
        page = await brief_page(
            engine, wanted, fingerprint,
            cursor=cursor, limit=PREVIEW_STEP, look=PREVIEW_STEP, seen=seen, runs=runs,
        )  # fmt: skip
        for job in page.jobs:
            tasks[job.task] += 1
            queues[job.queue] += 1
            if job.error_type is not None and (mark := fingerprint_of(job)) is not None:
                errors[job.error_type, mark] += 1
                examples.setdefault((job.error_type, mark), job.id)
        samples += page.jobs[: SAMPLES - len(samples)]
        answer.matched += len(page.jobs)
        answer.ids += [job.id for job in page.jobs[: SHOWN_IDS - len(answer.ids)]]
        if on_progress is not None:
            on_progress(answer.matched)
        cursor = page.cursor
        if cursor is None:
            break
    answer.complete = cursor is None
    answer.by_task, answer.by_queue = dict(tasks.most_common()), dict(queues.most_common())
    most = errors.most_common(MOST_ERRORS)
    shown = await _shown(engine, [examples[each] for each, _ in most], seen)
    answer.by_error = [
        MatchedError(
            error_type=kind,
            fingerprint=mark if seen is None or mark in shown else None,
            count=count,
        )
        for (kind, mark), count in most
    ]
    answer.samples = [JobBody.of(job) for job in samples]
    return answer


async def apply(
    app: BulkHost,
    action: BulkAction,
    filter: JobFilter,
    fingerprint: str | None = None,
    *,
    cutoff: datetime | None = None,
    reason: str | None = None,
    seen: Seen | None = None,
    runs: bool = True,
    on_progress: Callable[[int], None] | None = None,
    queues: Collection[str] = (),
) -> BulkAnswer:
    """Do an action now. It is over when this returns."""
    engine = app.engine
    cutoff = await checked_cutoff(engine, cutoff)
    wanted = within(action, filter, cutoff)
    answer = BulkAnswer(matched=0, changed=0, cutoff=cutoff)
    cursor: str | None = None
    while True:
        # By descending id, so that no job comes twice; a page at a time, so that a million of them
        # need no more memory.
        page = await brief_page(
            engine, wanted, fingerprint,
            cursor=cursor, limit=BATCH, look=LOOK, seen=seen, runs=runs,
        )  # fmt: skip
        ids = [job.id for job in page.jobs]
        answer.matched += len(ids)
        answer.ids += ids[: SHOWN_IDS - len(answer.ids)]
        if ids and action == "cancel":
            answer.changed += len(await job_tree.cancel(engine, ids, reason or "cancelled"))
        elif ids:
            answer.changed += len(await app.rerun(page.jobs, queues=queues))
        if on_progress is not None:
            on_progress(answer.matched)
        cursor = page.cursor
        if cursor is None:
            return answer


async def checked_cutoff(engine: Engine, cutoff: datetime | None) -> datetime:
    """Return the time of the engine, or one before it that was given."""
    now = moment_of(await engine.now())
    return now if cutoff is None else min(cutoff, now)


async def _shown(engine: Engine, ids: list[str], seen: Seen | None) -> set[str | None]:
    """Return the fingerprints of these jobs as callers see them."""
    if seen is None:
        return set()
    return {fingerprint_of(seen(job)) async for some in parts(engine, ids) for job in some}


# -- records -----------------------------------------------------------------------------------


async def start(engine: Engine, record: BulkRecord) -> BulkView:
    """Store an action. A server does it."""
    bulk_id = new_id()
    await engine.record_put(KIND, bulk_id, msgspec.json.encode(record), version=0)
    return record.view(bulk_id)


async def all_records(engine: Engine) -> list[Record]:
    """Return all actions that are stored, the oldest first."""
    return await records_of(engine, KIND)


async def find(engine: Engine, bulk_id: str) -> tuple[BulkRecord, int]:
    """Return an action and the version of its record."""
    record = await engine.record_get(KIND, parse_id(bulk_id))
    return _existing(record, bulk_id), 0 if record is None else record.version


async def stop(engine: Engine, bulk_id: str) -> BulkView:
    """Let a server stop an action; jobs that it is changing at this moment may still be changed."""

    def stopped(record: BulkRecord) -> None:
        if record.state != "running":
            raise JobConflict(f"bulk action {bulk_id} is {record.state} already")
        record.state = "stopped"

    return await _change(engine, bulk_id, stopped)


async def resume(engine: Engine, bulk_id: str) -> BulkView:
    """Let a server go on with an action that was stopped, or has failed."""

    def resumed(record: BulkRecord) -> None:
        if record.state not in ("stopped", "failed"):
            raise JobConflict(f"bulk action {bulk_id} is {record.state}: it needs no resume")
        # Without an owner: one that has not noticed the stop yet must not go on beside another.
        record.state, record.owner, record.error, record.finished_at = "running", "", None, None

    return await _change(engine, bulk_id, resumed)


async def _change(engine: Engine, bulk_id: str, change: Callable[[BulkRecord], None]) -> BulkView:
    key = parse_id(bulk_id)

    def changed(record: Record | None) -> tuple[BulkView, bytes]:
        found = _existing(record, bulk_id)
        change(found)
        return found.view(key), msgspec.json.encode(found)

    # Its server writes its progress meanwhile.
    busy = f"bulk action {bulk_id} is changed all the time; try again"
    return await change_record(engine, KIND, key, changed, busy=busy)


def _existing(record: Record | None, bulk_id: str) -> BulkRecord:
    if record is None:
        raise BulkNotFound(f"no bulk action has the id {bulk_id}; see `headrace bulk list`")
    return decode(record)
