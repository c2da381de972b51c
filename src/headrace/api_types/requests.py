"""Bodies of requests. The server checks them when it decodes; the client fills them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.model.insert_policy import LONGEST, OnDuplicate
from headrace.model.job import Source
from headrace.model.limits.rate import LARGEST_BURST
from headrace.model.names import NAME_LIMIT, TEXT_LIMIT
from headrace.model.policy import LONGEST_TIMEOUT
from headrace.model.status import Status
from headrace.model.times import LONGEST_WAIT

NAME = rf"^[A-Za-z0-9_][A-Za-z0-9_.:\-]{{0,{NAME_LIMIT - 1}}}$"
TEXT = rf"^[^\x00-\x1f\x7f]{{1,{TEXT_LIMIT}}}$"
REASON = r"^[^\x00-\x1f\x7f]{1,1000}$"
UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
FINGERPRINT = "^[0-9a-f]{16}$"
BATCH_JOBS = 1_000
FASTEST = 1_000_000.0

Scope = Literal["read", "write", "admin"]
Missed = Literal["skip", "latest", "all"]
Name = Annotated[str, Meta(pattern=NAME)]
Text = Annotated[str, Meta(pattern=TEXT)]
Moment = Annotated[datetime, Meta(tz=True)]
Fingerprint = Annotated[str, Meta(pattern=FINGERPRINT)]
ArtifactPath = Annotated[str, Meta(min_length=1, max_length=2_000)]
Reason = Annotated[str, Meta(min_length=1, max_length=1_000)]


class JobRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A job to enqueue. What is left out, or null, is as the task has it; `timeout` null is none.

    A client makes it with `client.job(…)`.
    """

    task: Name
    # A factory of its own, so that a client sends it also when it is empty.
    args: dict[str, Any] = msgspec.field(default_factory=lambda: {})
    queue: Name | None = None
    priority: int | float | None = None
    delay: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] | None = None
    run_at: Moment | None = None
    key: Text | None = None
    lane: Text | None = None
    retries: int | float | None = None
    timeout: Annotated[float, Meta(gt=0, le=LONGEST_TIMEOUT)] | UnsetType | None = UNSET
    expires: Annotated[float, Meta(gt=0, le=LONGEST_WAIT)] | None = None
    expires_at: Moment | None = None
    on_duplicate: OnDuplicate | None = None
    window: Annotated[float, Meta(gt=0, le=LONGEST)] | None = None
    max_wait: Annotated[float, Meta(gt=0, le=LONGEST)] | None = None
    meta: dict[str, Any] | None = None


class BatchRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Jobs that are all stored, or none."""

    jobs: Annotated[list[JobRequest], Meta(min_length=1, max_length=BATCH_JOBS)]


class CancelRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a job is to stop."""

    reason: Reason = "cancelled over the API"


class RetryRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """From which stage on; without one, from the first that is unfinished."""

    from_stage: Text | None = msgspec.field(name="from", default=None)


class EmptyRequest(msgspec.Struct, forbid_unknown_fields=True):
    """No fields."""


class PauseRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a queue is paused, and until when or for how many seconds; at most one of both."""

    reason: Annotated[str, Meta(pattern=REASON)] | None = None
    until: Moment | None = None
    duration: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] | None = msgspec.field(
        name="for", default=None
    )


class HoldRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Until when, or for how many seconds, nothing starts, and why; one of both."""

    until: Moment | None = None
    duration: Annotated[float, Meta(gt=0, le=LONGEST_WAIT)] | None = msgspec.field(
        name="for", default=None
    )
    reason: Annotated[str, Meta(pattern=REASON)] | None = None


# Lists only: with "or a single one" msgspec 0.22 now and then crashes when Python exits.
Names = Annotated[list[Name], Meta(min_length=1, max_length=100)]
Texts = Annotated[list[Text], Meta(min_length=1, max_length=100)]
Statuses = Annotated[list[Status], Meta(min_length=1, max_length=len(Status))]


class FilterRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs a bulk action is for, by the names that `GET /jobs` has."""

    status: Statuses | UnsetType = UNSET
    queue: Names | UnsetType = UNSET
    task: Names | UnsetType = UNSET
    lane: Text | UnsetType = UNSET
    key: Text | UnsetType = UNSET
    source: Source | UnsetType = UNSET
    parent: Annotated[str, Meta(pattern=UUID)] | UnsetType = UNSET
    group: Text | UnsetType = UNSET
    since: Moment | UnsetType = UNSET
    until: Moment | UnsetType = UNSET
    error_type: Texts | UnsetType = UNSET
    worker: Text | UnsetType = UNSET
    finished_since: Moment | UnsetType = UNSET
    finished_until: Moment | UnsetType = UNSET
    fingerprint: Fingerprint | UnsetType = UNSET


class BulkRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An action on all jobs that match. With `dry_run` they are only counted; with `background` the
    answer comes at once, and a server does it. Jobs that were made after `cutoff`, a time that the
    answer to `dry_run` has, are left alone.
    """

    action: Literal["cancel", "retry"]
    filter: FilterRequest
    dry_run: bool = False
    background: bool = False
    cutoff: Moment | None = None
    reason: Reason = "cancelled over the API"


class CopyRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What differs in a copy of a job: some of its arguments, and options as of a new job."""

    args: dict[str, Any] = {}
    queue: Name | None = None
    priority: int | float | None = None
    delay: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] | None = None
    run_at: Moment | None = None
    key: Text | None = None
    lane: Text | None = None
    retries: int | float | None = None
    timeout: Annotated[float, Meta(gt=0, le=LONGEST_TIMEOUT)] | UnsetType | None = UNSET
    expires: Annotated[float, Meta(gt=0, le=LONGEST_WAIT)] | None = None
    expires_at: Moment | None = None
    on_duplicate: OnDuplicate | None = None
    window: Annotated[float, Meta(gt=0, le=LONGEST)] | None = None
    max_wait: Annotated[float, Meta(gt=0, le=LONGEST)] | None = None
    meta: dict[str, Any] | None = None


def _written(form: str, most: int, description: str, example: str) -> Meta:
    """Text in a form that has a name, with a description for the OpenAPI document."""
    return Meta(
        min_length=1,
        max_length=most,
        description=description,
        examples=[example],
        extra_json_schema={"format": form},
    )


CronExpression = Annotated[str, _written("cron", 200, "Five fields of cron.", "*/5 * * * *")]
TimeZone = Annotated[
    str, _written("time-zone", 100, "A name of the IANA time zone database.", "Europe/Berlin")
]
RateText = Annotated[str, _written("rate", 60, "Starts in a time: 100/s, 10/m, 1/5s.", "10/m")]


class RateRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many jobs may start in a time, and how many of them at once; without `burst`, what 0.2 s
    hold.
    """

    rate: RateText
    burst: Annotated[int, Meta(ge=1, le=LARGEST_BURST)] | None = None


class ScheduleRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """When a task runs by the clock, and with which arguments."""

    expression: CronExpression
    task: Name
    tz: TimeZone = "UTC"
    params: dict[str, Any] = {}
    allow_overlap: bool = True
    enabled: bool = True
    missed: Missed = "latest"


class ScheduleSettings(TypedDict, total=False):
    """The same as options of `put_schedule`, beside its arguments."""

    tz: str
    allow_overlap: bool
    enabled: bool
    missed: Missed


class PutOptions(ScheduleSettings, total=False):
    """The options of `put_schedule` of a client."""

    params: Mapping[str, Any] | None


class AppPutOptions(PutOptions, total=False):
    """Those of an App. `source` says who asked; without `replace`, one that exists is refused."""

    replace: bool
    source: str


class TriggerRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """With `force`, also while a job of the schedule is unfinished."""

    force: bool = False


class KeepRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A file to keep when its job is pruned."""

    path: ArtifactPath
    owner: Name
    reason: Annotated[str, Meta(max_length=1_000)] = ""


class ReleaseRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A kept file that its owner needs no longer."""

    path: ArtifactPath
    owner: Name


class KeyRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A key to be made."""

    name: Text
    scope: Scope = "read"
    user: Text | None = None
    queues: Annotated[Sequence[Name], Meta(max_length=100)] = ()
    rate: Annotated[float, Meta(gt=0, le=FASTEST)] | None = None


class KeyLimits(TypedDict, total=False):
    """What a key may be limited to, as options of `create_key`."""

    user: str | None
    queues: Sequence[str]
    rate: float | None


class ExecuteRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A workflow to run. With `key`, a second request makes no second run. `priority` is that of
    the run, if not that of the workflow.
    """

    workflow_id: Name
    params: dict[str, Any] = {}
    version: int | Annotated[str, Meta(max_length=100)] | None = None
    key: Text | None = None
    priority: int | msgspec.UnsetType = msgspec.UNSET


class RunOptions(TypedDict, total=False):
    """Which version of a workflow to run, and key and priority of the run, as options of
    `run_workflow`.
    """

    version: int | str | None
    key: str | None
    priority: int


class RunRetryRequest(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"step": "from"}
):
    """From which step to run again; null: what did not complete."""

    step: Annotated[str, Meta(max_length=64)] | None = None
