"""Makes requests from arguments, and decodes responses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

import msgspec

from headrace.api_types.job import JobBody
from headrace.api_types.requests import JobRequest
from headrace.api_types.responses import list_of
from headrace.client.errors import UnexpectedAnswer
from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.insert_policy import InsertPolicy, OnDuplicate
from headrace.model.job import Job
from headrace.model.names import check_name, check_text
from headrace.model.policy import check_expires, check_priority, check_timeout
from headrace.model.times import check_delay, check_moment
from headrace.task.codec import encode
from headrace.task.job_options import MOST_RETRIES

T = TypeVar("T")


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
    expires: float | datetime | None
    on_duplicate: OnDuplicate | None
    window: float | None
    max_wait: float | None
    meta: Mapping[str, Any] | None


def make_request(name: str, args: Mapping[str, Any] | None, options: JobOptions) -> JobRequest:
    """Return a job to send. The server checks what cannot be checked here."""
    request = JobRequest(task=check_name("task", name), args=_plain(f'task "{name}"', args or {}))
    for option, value in options.items():
        if option not in _CHECKS:
            raise InvalidSetting(
                f'unknown option "{option}" for a job over HTTP; known: {", ".join(_CHECKS)}'
            )
        if option == "expires" and isinstance(value, datetime):
            request.expires_at = _moment("expires", value)
        elif value is not None or option == "timeout":
            setattr(request, option, _CHECKS[option](value))
    if request.delay is not None and request.run_at is not None:
        raise InvalidSetting("give delay or run_at, not both")
    return request


def _moment(name: str, moment: datetime) -> datetime:
    check_moment(moment, name)
    return moment.astimezone(UTC)


def _retries(retries: int) -> int:
    if not 0 <= retries <= MOST_RETRIES:
        raise InvalidSetting(f"retries must be between 0 and {MOST_RETRIES}, got {retries!r}")
    return retries


def _on_duplicate(value: Any) -> Any:
    return InsertPolicy(on_duplicate=value).on_duplicate


def _plain(what: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy as JSON will have it, so that nothing changes it before it is sent."""
    try:
        return msgspec.json.decode(encode(value), type=dict[str, Any])
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidArguments(f"{what}: {error}; pass plain data") from None


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "queue": functools.partial(check_name, "queue"),
    "priority": check_priority,
    "delay": check_delay,
    "run_at": functools.partial(_moment, "run_at"),
    "key": functools.partial(check_text, "key"),
    "lane": functools.partial(check_text, "lane"),
    "retries": _retries,
    "timeout": check_timeout,
    "expires": check_expires,
    "on_duplicate": _on_duplicate,
    "window": functools.partial(check_delay, name="window"),
    "max_wait": functools.partial(check_delay, name="max_wait"),
    "meta": functools.partial(_plain, "meta"),
}


_job_decoder = msgspec.json.Decoder(JobBody)


def decode_job(content: bytes) -> Job:
    """Return a job from its JSON."""
    try:
        return _job_decoder.decode(content).to_job()
    except msgspec.DecodeError as error:
        raise _unreadable("a job", error) from None


def decode(content: bytes, kind: type[T], what: str) -> T:
    """Return a response as a `kind`. Fields that a newer server adds are ignored."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise _unreadable(what, error) from None


def decode_list(content: bytes, noun: str, item: type[T]) -> list[T]:
    """Return the items of `{"<noun>": […]}`."""
    found: list[T] = getattr(decode(content, list_of(noun, item), f"a list of {noun}"), noun)  # type: ignore[arg-type]
    return found


def _unreadable(what: str, error: msgspec.DecodeError) -> UnexpectedAnswer:
    return UnexpectedAnswer(
        f"the server's answer is not {what}: {error}; is API_URL that of a Headrace server of "
        "this version?"
    )
