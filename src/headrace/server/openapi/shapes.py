"""The shapes of answers that no struct of the model has, for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headrace.server.auth.keys import Scope


class BulkAnswer(msgspec.Struct):
    """How many jobs matched and were changed, and the ids of the first 100."""

    matched: int
    changed: int
    ids: list[str]


class Entry(msgspec.Struct):
    """Something kept with a job: a stage, an artifact. `body` is any JSON."""

    kind: str
    name: str
    body: Any
    token: int
    at: datetime


class Artifact(msgspec.Struct):
    """A file of a job. `sha256` is the checksum of its content, `path` where the store has it."""

    layer: str
    name: str
    path: str
    size: int
    sha256: str | None
    media_type: str | None
    metadata: dict[str, str]
    at: datetime | None


class JobResult(msgspec.Struct):
    """What a job's handler returned: any JSON."""

    result: Any


class Reasons(msgspec.Struct):
    """Why a job is not running, in sentences."""

    reasons: list[str]


class Delivered(msgspec.Struct):
    """What became of an event for a job."""

    job_id: str
    event: str
    delivery: Literal["delivered", "already"]


class QueuePaused(msgspec.Struct):
    """Whether a queue is paused now."""

    queue: str
    paused: bool


class TaskView(msgspec.Struct):
    """A task: its arguments as JSON schema, and its policy."""

    name: str
    description: str | None
    arguments: dict[str, Any]
    policy: dict[str, Any]


class KeyView(msgspec.Struct):
    """A key, without its secret."""

    id: str
    name: str
    scope: Scope
    user: str | None
    queues: list[str]
    rate: float | None
    created_at: datetime
    revoked_at: datetime | None


class NewKey(KeyView):
    """A key with its secret, which is shown this once."""

    secret: str


class Health(msgspec.Struct):
    """All is well."""

    status: Literal["ok"]


class RunningJob(msgspec.Struct):
    """A job that runs now. `platform` is its queue."""

    platform: str
    job_id: str
    workflow_id: str | None
    started_at: datetime | None
    elapsed_seconds: float


class RunningSummary(msgspec.Struct):
    """How many run, how many wait."""

    running_count: int
    queued_count: int


class RunningData(msgspec.Struct):
    """Running jobs, and how many are queued in each queue."""

    running: list[RunningJob]
    queued: dict[str, int]
    summary: RunningSummary


class RunningAnswer(msgspec.Struct):
    """What runs now, and what waits."""

    success: Literal[True]
    data: RunningData


class DispatcherView(msgspec.Struct):
    """A dispatcher, with what it said last. `lag` is messages that are still to become jobs."""

    name: str
    type: str
    adapter: str
    seen_at: datetime
    silent: bool
    healthy: bool = False
    stored: int = 0
    set_aside: int = 0
    lag: int | None = None
    late_seconds: float | None = None


class ScheduleTime(msgspec.Struct):
    """A time of a schedule, in its own zone and in UTC."""

    local: datetime
    utc: datetime


class ScheduleRun(msgspec.Struct):
    """A job that a schedule has made. `time` is null if somebody asked for it."""

    job_id: str
    time: datetime | None
    made_at: datetime
    triggered: bool
    status: str


class ScheduleView(msgspec.Struct):
    """A schedule in words, with what comes next and what became of its last jobs."""

    name: str
    task: str
    expression: str
    words: str
    tz: str
    params: dict[str, Any]
    allow_overlap: bool
    missed: Literal["skip", "latest", "all"]
    enabled: bool
    origin: str
    since: datetime
    late_seconds: float
    next: list[ScheduleTime]
    last_runs: list[ScheduleRun]
    skipped: list[Any]


class ScheduleTimes(msgspec.Struct):
    """When a schedule fires next."""

    expression: str
    words: str
    tz: str
    next: list[ScheduleTime]


class ScheduleRemoved(msgspec.Struct):
    """A schedule that is gone."""

    name: str
    removed: Literal[True]


class DeadLetterView(msgspec.Struct):
    """A message that made no job, and why."""

    id: str
    adapter: str
    topic: str
    partition: int | None
    offset: int | str | None
    error: str
    reason: str
    size: int
    sent_at: float | None
    set_aside_at: datetime
    kept_bytes: int


class WholeDeadLetter(DeadLetterView):
    """The same with the message itself, in base64."""

    raw: str


class DeadLetterRemoved(msgspec.Struct):
    """A message that is gone."""

    id: str
    removed: Literal[True]


class Replayed(msgspec.Struct):
    """The job that a message has made."""

    job_id: str
    created: bool


ALL = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == __name__
)
