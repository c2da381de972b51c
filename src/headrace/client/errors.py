"""Errors of a remote server, and how its refusals become errors. All others are those of an App.

    HeadraceError
    ├── AccessDenied        the key is missing, wrong, revoked, or may not do this
    ├── NotFound            the server has no such file or record
    ├── TooManyRequests     too many requests for this key; nothing was changed
    └── UnexpectedAnswer    what answered does not speak as a Headrace server does

A server that cannot be reached is an `EngineUnavailable`, as an engine would be.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping

import msgspec

from headrace import errors
from headrace.api_types.responses import ProblemDetails
from headrace.errors import HeadraceError


class AccessDenied(HeadraceError):
    """The server refuses this key, or a request without one; nothing was changed."""


class NotFound(HeadraceError):
    """The server has nothing of this name. A missing job is a `JobNotFound`."""


class TooManyRequests(HeadraceError):
    """Too many requests for this key; nothing was changed."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnexpectedAnswer(HeadraceError):
    """The response is not one of a Headrace server."""


# -- from a refusal to the error that an App would raise ---------------------------------------

MEDIA_TYPE = "application/problem+json"
SHOWN = 200


def problem_text(problem: ProblemDetails) -> str:
    """Return the problem in words: what, where, and the remedy, each once."""
    text = problem.detail or problem.title
    if problem.field and problem.field not in text:
        text = f"{problem.field}: {text}"
    if problem.remedy and problem.remedy.rstrip(".") not in text:
        text = f"{text.rstrip('.')}; {problem.remedy}"
    return text


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


# The last word of a problem's type names the error: ".../unknown-task" is an UnknownTask.
_BY_TYPE: dict[str, type[HeadraceError]] = {
    _plain(kind.__name__): kind
    for kind in (
        errors.InvalidInput,
        errors.UnknownTask,
        errors.UnknownSchedule,
        errors.UnknownWorkflow,
        errors.UnknownEventType,
        errors.UnknownAlertRule,
        errors.UnknownDestination,
        errors.InvalidArguments,
        errors.PayloadTooLarge,
        errors.InvalidName,
        errors.InvalidSetting,
        errors.JobNotFound,
        errors.JobConflict,
        errors.LaneFull,
        errors.RecordConflict,
        errors.ResultTimeout,
        errors.JobFailed,
        errors.EngineError,
        errors.EngineUnavailable,
        errors.KeyInDoubt,
        errors.StorageFull,
        errors.SchemaTooNew,
        errors.MigrationNeeded,
        errors.MissingEncryptionKey,
        errors.SealRefused,
    )
}

# 404 is not here: only a problem of its own type says that it is the job that is missing.
_BY_STATUS: dict[int, type[HeadraceError]] = {
    400: errors.InvalidInput,
    401: AccessDenied,
    403: AccessDenied,
    409: errors.JobConflict,
    413: errors.PayloadTooLarge,
    415: errors.InvalidInput,
    422: errors.InvalidInput,
    502: errors.EngineUnavailable,
    503: errors.EngineUnavailable,
    504: errors.EngineUnavailable,
    507: errors.StorageFull,
}

# A proxy sends these, with a text of its own, while the server behind it is away.
_AWAY = (502, 503, 504)


def error_for(
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    *,
    asked: str,
    conflict_error: type[HeadraceError] | None = None,
) -> HeadraceError:
    """Return the error for a response that is not a success."""
    problem = _read(headers, content)
    if status == 429:
        text = problem_text(problem) if problem else "too many requests"
        return TooManyRequests(
            f"{asked}: {text}", retry_after=retry_after(headers.get("Retry-After"))
        )
    if problem is None:
        return _foreign(status, content, asked)
    if status in (401, 403):
        return AccessDenied(_denied(status, problem_text(problem)))
    named = _BY_TYPE.get(_plain(re.split(r"[/#:]", problem.type)[-1]))
    if status == 409 and conflict_error is not None:
        named = conflict_error
    kind = named or _BY_STATUS.get(status)
    if kind is None and status == 404 and problem.type.endswith("-not-found"):
        kind = NotFound
    if kind is None:
        return UnexpectedAnswer(f"{asked} was answered with {status}: {problem_text(problem)}")
    return kind(problem_text(problem))


def retry_after(text: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header, which may be a date."""
    if text is None:
        return None
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def _read(headers: Mapping[str, str], content: bytes) -> ProblemDetails | None:
    if not headers.get("Content-Type", "").startswith(MEDIA_TYPE):
        return None
    try:
        return msgspec.json.decode(content, type=ProblemDetails)
    except msgspec.DecodeError:
        return None


def _denied(status: int, text: str) -> str:
    if "HEADRACE_API_KEY" in text:
        return text
    remedy = (
        "set HEADRACE_API_KEY to a key that is valid"
        if status == 401
        else "use a key that may do this in HEADRACE_API_KEY"
    )
    return f"{text.rstrip('.')}; {remedy}"


def _foreign(status: int, content: bytes, asked: str) -> HeadraceError:
    """Return the error for a response that is not of a Headrace server."""
    body = " ".join(content.decode("utf-8", "replace").split())
    body = body if len(body) <= SHOWN else f"{body[: SHOWN - 1]}…"
    text = f"{asked} was answered with {status}" + (f": {body}" if body else "")
    if status in _AWAY:
        return errors.EngineUnavailable(text)
    if status in (401, 403):
        return AccessDenied(_denied(status, text))
    return UnexpectedAnswer(f"{text}; is API_URL that of a Headrace server?")
