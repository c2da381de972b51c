"""Bodies of responses, jobs aside. Fields that a newer server adds are ignored by a client."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from headrace.api_types.requests import Missed, Scope

# -- jobs and what belongs to them -------------------------------------------------------------


class EntryView(msgspec.Struct, kw_only=True):
    """An entry of a job: a stage, an artifact. `body` is any JSON."""

    kind: str
    name: str
    body: msgspec.Raw
    token: int = 0
    at: datetime


class JobResult(msgspec.Struct):
    """What a job's handler returned: any JSON."""

    result: Any


class Reasons(msgspec.Struct):
    """Why a job is not running, in sentences."""

    reasons: list[str]


class Delivered(msgspec.Struct):
    """What became of a signal for a job."""

    job_id: str
    event: str
    delivery: Literal["delivered", "already"]


class RunningJob(msgspec.Struct, kw_only=True):
    """A job that runs now, or a run of a workflow of which a step runs now. `platform` is the
    queue. Seconds are whole; servers of earlier versions send fractions.
    """

    platform: str
    job_id: str
    workflow_id: str | None = None
    started_at: datetime | None = None
    elapsed_seconds: Annotated[float, msgspec.Meta(extra_json_schema={"type": "integer"})] = 0


class RunningSummary(msgspec.Struct, kw_only=True):
    """How many jobs run, and how many wait."""

    running_count: int
    queued_count: int


class Running(msgspec.Struct, kw_only=True):
    """Running jobs, the longest first, and how many jobs wait in each queue."""

    running: list[RunningJob]
    queued: dict[str, int]
    summary: RunningSummary


class RunningAnswer(msgspec.Struct, kw_only=True):
    """The answer to `GET /api/v2/jobs/running`."""

    success: bool = True
    data: Running


# -- tasks, queues, health ---------------------------------------------------------------------


class TaskView(msgspec.Struct, kw_only=True):
    """A task that the server knows: its arguments as JSON schema, and its policy."""

    name: str
    description: str | None = None
    arguments: dict[str, Any] = {}
    policy: dict[str, Any] = {}


class QueuePaused(msgspec.Struct, omit_defaults=True):
    """Whether a queue is paused now, by whom, since when, why, and until when."""

    queue: str
    paused: bool
    paused_by: str | None = None
    paused_at: datetime | None = None
    paused_reason: str | None = None
    paused_until: datetime | None = None


class Health(msgspec.Struct):
    """The server works."""

    status: Literal["ok"] = "ok"


# -- schedules ---------------------------------------------------------------------------------


class ScheduleTime(msgspec.Struct, kw_only=True):
    """A time of a schedule, in its own zone and in UTC."""

    local: datetime
    utc: datetime


class ScheduleRun(msgspec.Struct, kw_only=True):
    """A job that a schedule has made. `time` is None if it was triggered by hand."""

    job_id: str
    time: datetime | None
    made_at: datetime
    triggered: bool
    status: str


class SkippedTimes(msgspec.Struct, kw_only=True):
    """Times of a schedule that made no job, and why."""

    reason: str
    first: datetime
    last: datetime
    count: int


class ScheduleView(msgspec.Struct, kw_only=True):
    """A schedule in words, with its next times and its last jobs. One that is not `stored` is
    declared in code and does not fire before a cron dispatcher runs.
    """

    name: str
    task: str
    expression: str
    words: str
    tz: str
    params: dict[str, Any]
    allow_overlap: bool
    missed: Missed
    enabled: bool
    origin: str
    since: datetime
    late_seconds: float
    next: list[ScheduleTime]
    last_runs: list[ScheduleRun]
    skipped: list[SkippedTimes] = []
    stored: bool = True


class ScheduleTimes(msgspec.Struct, kw_only=True):
    """When a schedule fires next."""

    expression: str
    words: str
    tz: str
    next: list[ScheduleTime]


class ScheduleRemoved(msgspec.Struct):
    """A schedule that was removed."""

    name: str
    removed: bool = True


# -- dispatchers and dead letters --------------------------------------------------------------


class DispatcherView(msgspec.Struct, kw_only=True):
    """A dispatcher, with its last report. `lag` is messages that are still to become jobs,
    `late_seconds` how late the last job of a schedule was.
    """

    name: str
    type: str
    adapter: str
    seen_at: datetime
    silent: bool
    healthy: bool = False
    host: str = ""
    pid: int = 0
    stored: int = 0
    set_aside: int = 0
    lag: int | None = None
    late_seconds: float | None = None
    received: int | None = None
    duplicates: int | None = None
    held: int | None = None
    schedules: int | None = None
    next_at: datetime | None = None
    problems: int | None = None


class DeadLetterSummary(msgspec.Struct, kw_only=True):
    """A message that made no job, and why; without the message itself."""

    id: str
    adapter: str
    topic: str
    partition: int | None = None
    offset: int | str | None = None
    error: str
    reason: str
    size: int
    sent_at: float | None = None
    set_aside_at: datetime
    kept_bytes: int


class DeadLetterView(DeadLetterSummary, kw_only=True):
    """The same with the message, in base64 on the wire. It is empty in a page of many."""

    raw: bytes = b""


class FileReleased(msgspec.Struct):
    """A file that its owner keeps no longer; `released` is False if it did not."""

    path: str
    owner: str
    released: bool


class DeadLetterPage(msgspec.Struct):
    """Dead letters by id. `cursor` asks for the next page."""

    dead_letters: list[DeadLetterView]
    cursor: str | None = None


class DeadLetterRemoved(msgspec.Struct):
    """A message that was removed."""

    id: str
    removed: bool = True


class Replayed(msgspec.Struct):
    """The job that a message has made, and whether it is new."""

    job_id: str
    created: bool


# -- keys and the audit ------------------------------------------------------------------------


class KeyView(msgspec.Struct, kw_only=True):
    """A key, without its secret. `queues` empty means all; `rate` is requests a second."""

    id: str
    name: str
    scope: Scope
    user: str | None = None
    queues: Sequence[str] = ()
    rate: float | None = None
    created_at: datetime
    revoked_at: datetime | None = None


class NewKey(KeyView, kw_only=True):
    """A key with its secret, which is shown this once."""

    secret: str


class AuditEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One change, or many enqueues of one task by one caller. A stored one has no `id` yet."""

    id: str = ""
    at: datetime
    action: str
    target: str
    who: str
    key_id: str | None = None
    user: str | None = None
    count: int = 1
    detail: dict[str, Any] = {}


class AuditPage(msgspec.Struct):
    """Changes, the newest first. `cursor` asks for the next page."""

    entries: list[AuditEntry]
    cursor: str | None = None


# -- workflows ---------------------------------------------------------------------------------


class RunBegun(msgspec.Struct):
    """A run that has begun: the id of its job, and which version it keeps."""

    job_id: str
    workflow_id: str
    version: int | str
    status: str


class ExecuteAnswer(msgspec.Struct, kw_only=True):
    """The answer to `POST /api/v2/workflows/execute`."""

    success: bool = True
    data: RunBegun


class BegunAgain(msgspec.Struct):
    """The steps that are run again; the others keep their results."""

    job_id: str
    steps: list[str]


# -- refusals and lists ------------------------------------------------------------------------


class ProblemDetails(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A refusal (RFC 9457). `type` ends in a word that names the kind of problem."""

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""
    field: str | None = None
    value: str | None = None
    remedy: str | None = None


@functools.cache
def list_of(noun: str, item: type) -> type[msgspec.Struct]:
    """Return the type of a page of a list: `{"<noun>": […], "cursor": null}`."""
    return msgspec.defstruct(
        f"{item.__name__}List",
        [(noun, list[item]), ("cursor", str | None, None)],  # type: ignore[valid-type]
    )
