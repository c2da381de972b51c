"""What a server answers about schedules, dead letters, keys, dispatchers and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

Scope = Literal["read", "write", "admin"]
Missed = Literal["skip", "latest", "all"]


class ScheduleTime(msgspec.Struct, kw_only=True):
    """A time of a schedule, in its own zone and in UTC."""

    local: datetime
    utc: datetime


class ScheduleRun(msgspec.Struct, kw_only=True):
    """A job that a schedule has made. `time` is None if somebody asked for it."""

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
    """A schedule in words, with what comes next and what became of its last jobs."""

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


class ScheduleTimes(msgspec.Struct, kw_only=True):
    """When a schedule fires next."""

    expression: str
    words: str
    tz: str
    next: list[ScheduleTime]


class ScheduleList(msgspec.Struct):
    """Schedules, as they travel."""

    schedules: list[ScheduleView]


class DeadLetterView(msgspec.Struct, kw_only=True):
    """A message that made no job, and why. `raw` is the message, where one was asked for."""

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
    raw: bytes = b""


class DeadLetterPage(msgspec.Struct):
    """Dead letters by id. `cursor` asks for the next page."""

    dead_letters: list[DeadLetterView]
    cursor: str | None = None


class Replayed(msgspec.Struct):
    """The job that a message has made, and whether it is new."""

    job_id: str
    created: bool


class KeyView(msgspec.Struct, kw_only=True):
    """A key, without its secret. `queues` empty means all."""

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


class KeyList(msgspec.Struct):
    """Keys, as they travel."""

    keys: list[KeyView]


class AuditEntry(msgspec.Struct, kw_only=True):
    """One change, or many enqueues of one task by one caller."""

    id: str
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


class DispatcherView(msgspec.Struct, kw_only=True):
    """A dispatcher. `lag` is messages, `late_seconds` is of the last job of a schedule."""

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


class DispatcherList(msgspec.Struct):
    """Dispatchers, as they travel."""

    dispatchers: list[DispatcherView]
