"""What travels: requests as the server reads them, answers as the model knows them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from headrace.client.errors import UnexpectedAnswer
from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.durable.awaited import Awaited
from headrace.model.ids import parse_id
from headrace.model.job import Job, JobFilter
from headrace.model.names import check_name, check_text
from headrace.model.outcome import AttemptEntry
from headrace.model.policy import check_priority, check_timeout
from headrace.model.status import STATES, Status
from headrace.model.times import check_delay, check_moment, in_utc
from headrace.task.codec import encode
from headrace.task.task import MOST_RETRIES

T = TypeVar("T")

_NULL = msgspec.Raw(b"null")
_EMPTY = msgspec.Raw(b"{}")


class JobRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A job to hand in, as `client.job(…)` makes it. What is None is left to the task."""

    task: str
    args: msgspec.Raw
    queue: str | None = None
    priority: int | None = None
    delay: float | None = None
    run_at: datetime | None = None
    key: str | None = None
    lane: str | None = None
    retries: int | None = None
    timeout: float | UnsetType | None = UNSET
    meta: msgspec.Raw | None = None


class JobOptions(TypedDict, total=False):
    """What a job may have besides its arguments, as in `task.options(…)`.

    None is as the task has it, except for `timeout`, where it is no limit.
    """

    queue: str | None
    priority: int | None
    delay: float | None
    run_at: datetime | None
    key: str | None
    lane: str | None
    retries: int | None
    timeout: float | None
    meta: Mapping[str, Any] | None


def make_request(name: str, args: Mapping[str, Any] | None, options: JobOptions) -> JobRequest:
    """Check what can be checked without the server; it checks the rest."""
    request = JobRequest(task=check_name("task", name), args=_json(f'task "{name}"', args or {}))
    for option, value in options.items():
        if option not in _CHECKS:
            raise InvalidSetting(
                f'unknown option "{option}" for a job over HTTP; known: {", ".join(_CHECKS)}'
            )
        if value is not None or option == "timeout":
            setattr(request, option, _CHECKS[option](value))
    if request.delay is not None and request.run_at is not None:
        raise InvalidSetting("give delay or run_at, not both")
    return request


def _run_at(moment: datetime) -> datetime:
    check_moment(moment)
    return moment.astimezone(UTC)


def _retries(retries: int) -> int:
    if not 0 <= retries <= MOST_RETRIES:
        raise InvalidSetting(f"retries must be between 0 and {MOST_RETRIES}, got {retries!r}")
    return retries


def _json(what: str, value: Mapping[str, Any]) -> msgspec.Raw:
    try:
        return msgspec.Raw(encode(value))
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidArguments(f"{what}: {error}; pass plain data") from None


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "queue": functools.partial(check_name, "queue"),
    "priority": check_priority,
    "delay": check_delay,
    "run_at": _run_at,
    "key": functools.partial(check_text, "key"),
    "lane": functools.partial(check_text, "lane"),
    "retries": _retries,
    "timeout": check_timeout,
    "meta": functools.partial(_json, "meta"),
}


def filter_fields(wanted: JobFilter) -> dict[str, Any]:
    """A filter by the names that the server knows; what is empty is left out."""
    fields = {
        "status": [status.value for status in wanted.statuses],
        "queue": list(wanted.queues),
        "task": list(wanted.tasks),
        "lane": wanted.lane,
        "key": wanted.key,
        "source": wanted.source,
        "parent": None if wanted.parent is None else parse_id(wanted.parent),
        "group": wanted.group,
        "since": _moment(wanted.created_after),
        "until": _moment(wanted.created_before),
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else in_utc(moment).isoformat().replace("+00:00", "Z")


class _WireJob(msgspec.Struct, kw_only=True):
    """The shape of `Job.to_dict()`, with what JSON it holds left as it is."""

    job_id: str
    task: str
    queue: str
    status: Status
    created_at: datetime
    run_at: datetime
    args: msgspec.Raw = _EMPTY
    priority: int = 0
    lane: str | None = None
    width: int | None = None
    key: str | None = None
    source: str = "api"
    attempt: int = 0
    max_attempts: int = 4
    timeout: float | None = None
    on_crash: str = "retry"
    stage: str | None = None
    progress: float = 0.0
    message: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    worker: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    result: msgspec.Raw = _NULL
    cancel_requested: bool = False
    attempts: tuple[AttemptEntry, ...] = ()
    meta: msgspec.Raw = _EMPTY
    parent: str | None = None
    group: str | None = None
    awaits: tuple[Awaited, ...] = ()

    def job(self) -> Job:
        """The job as an App would answer it.

        People see "waits for its lane" and "may run now" as one status, so a pending job comes
        back in the last of its states.
        """
        return Job(
            id=self.job_id,
            task=self.task,
            queue=self.queue,
            state=STATES[self.status][-1],
            args_json=bytes(self.args),
            priority=self.priority,
            lane=self.lane,
            width=self.width or 1,
            key=self.key,
            source=self.source,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            on_crash=self.on_crash,
            stage=self.stage,
            progress=self.progress,
            message=self.message,
            created_at=self.created_at,
            run_at=self.run_at,
            started_at=self.started_at,
            completed_at=self.completed_at,
            worker=self.worker,
            error_type=self.error_type,
            error=self.error_message,
            result_json=bytes(self.result) if self.status is Status.COMPLETED else None,
            cancel_requested=self.cancel_requested,
            meta_json=bytes(self.meta),
            log=b"\n".join(msgspec.json.encode(entry) for entry in self.attempts),
            parent=self.parent,
            group=self.group,
            awaits=self.awaits,
        )


class JobList(msgspec.Struct):
    """A page of jobs."""

    jobs: list[_WireJob]
    cursor: str | None = None


class BatchAnswer(msgspec.Struct):
    """The answer to a batch: the jobs, and for each whether it is new."""

    jobs: list[_WireJob]
    created: list[bool]


_job_decoder = msgspec.json.Decoder(_WireJob)


def decode_job(content: bytes) -> Job:
    """A job from its JSON."""
    try:
        return _job_decoder.decode(content).job()
    except msgspec.DecodeError as error:
        raise _unreadable("a job", error) from None


def decode(content: bytes, kind: type[T], what: str) -> T:
    """An answer of a known shape. Fields that a newer server adds are no harm."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise _unreadable(what, error) from None


def _unreadable(what: str, error: msgspec.DecodeError) -> UnexpectedAnswer:
    return UnexpectedAnswer(
        f"the server's answer is not {what}: {error}; is API_URL that of a Headrace server of "
        "this version?"
    )
