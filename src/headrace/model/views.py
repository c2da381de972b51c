"""What engines return: queues, lanes, records, findings."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from headrace.model.job import ClaimedJob, Job


class Exchange(msgspec.Struct, frozen=True):
    """The result of an exchange: settlements that were refused, and jobs to run in order. In
    `next_in` seconds a job may start that this claim would have leased, but for a rate or a hold;
    None if there was none.
    """

    refused: tuple[str, ...]
    jobs: list[ClaimedJob]
    next_in: float | None = None


class LostJob(msgspec.Struct, kw_only=True):
    """A running job whose worker let its lease lapse. `age` is seconds since it was claimed."""

    job: ClaimedJob
    worker: str
    started_at: datetime
    age: float


Delivery = Literal["delivered", "already", "finished", "unknown"]


class Due(msgspec.Struct, frozen=True):
    """How many scheduled jobs became pending, and in how many seconds the next is due."""

    moved: int
    next_in: float | None


class Expired(msgspec.Struct, frozen=True):
    """Jobs that were cancelled because they had not started in time, and in how many seconds the
    next may be: None if none has a time to start by.
    """

    ids: tuple[str, ...]
    next_in: float | None


class QueueView(msgspec.Struct, kw_only=True):
    """A queue with its depth. `oldest_age` is of the oldest pending job, in seconds. `reserved` are
    those of the ready jobs, by task, that wait for a worker that knows their task. Who paused it,
    and why, is not known to engines, nor of pauses by programs of an earlier version.
    """

    name: str
    paused: bool
    scheduled: int = 0
    waiting: int = 0
    ready: int = 0
    running: int = 0
    oldest_age: float | None = None
    reserved: dict[str, int] = {}
    paused_by: str | None = None
    paused_at: datetime | None = None
    paused_reason: str | None = None
    paused_until: datetime | None = None


class LaneView(msgspec.Struct, kw_only=True):
    """A lane with its holders and how many wait. Holders include retries that keep their place."""

    queue: str
    lane: str
    width: int
    used: int
    waiting: int
    holders: tuple[str, ...]
    oldest_age: float | None = None


class JobPage(msgspec.Struct):
    """One page of jobs, newest first. `cursor` asks for the next one; None at the end. A search
    that goes on there has looked at jobs back to the time `searched_to`.
    """

    jobs: list[Job]
    cursor: str | None
    searched_to: datetime | None = None


class JobCount(msgspec.Struct, frozen=True):
    """How many jobs match among those that were looked at; not `complete` if there are others."""

    count: int
    complete: bool


class Record(msgspec.Struct, frozen=True):
    """A small administrative record. `version` grows by one with each change."""

    kind: str
    key: str
    version: int
    body: bytes
    updated_at: datetime


class RecordChange(msgspec.Struct, frozen=True):
    """A record to be written, guarded like `record_put`. `version` None: whatever is there; 0: only
    if it does not exist; n: only if it still has version n.
    """

    kind: str
    key: str
    body: bytes
    version: int | None = None


class FindingTarget(msgspec.Struct, frozen=True):
    """Where people see more: what kind of thing, and which."""

    page: str
    query: dict[str, str] = {}


class Finding(msgspec.Struct, frozen=True):
    """Something to be said about the system, with what to do about it.

    `kind` and `name` stay the same while it lasts: "queue.paused" of queue "mail". `action` is the
    verb that mends it, where one does: "resume". `since` is None where nobody knows.
    """

    level: Literal["ok", "warning", "error"]
    subject: str
    detail: str
    remedy: str = ""
    kind: str = ""
    name: str = ""
    since: datetime | None = None
    action: str | None = None
    target: FindingTarget | None = None


class SchemaState(msgspec.Struct, frozen=True, kw_only=True):
    """How the schema of a store is (version 0: there is none), and what `migrate` would do to it.

    A program may use the store if it knows version `min_program`; this one knows up to `known`.
    `pending` names what is missing for this program; `script` does it, where people can run one.
    """

    version: int
    min_program: int
    known: int
    pending: tuple[str, ...] = ()
    script: str = ""

    @property
    def refused(self) -> bool:
        """Whether this program is too old for the store."""
        return self.min_program > self.known


class EngineSpace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an engine keeps its jobs, and how many bytes it uses there. `free_bytes` is None where
    the engine cannot tell.
    """

    where: Literal["disk", "memory"]
    used_bytes: int
    free_bytes: int | None = None


class EngineReport(msgspec.Struct, kw_only=True):
    """What an engine tells about itself. `clock_skew` is server time minus this machine's."""

    engine: str
    server_version: str
    schema_version: int
    clock_skew: float
    findings: list[Finding]
    space: EngineSpace | None = None
