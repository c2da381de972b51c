"""Every refusal is a problem document (RFC 9457) that names the field, the value and the remedy."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route

from headrace import errors
from headrace.admin.bulk import BulkNotFound
from headrace.admin.keys import KeyNotFound
from headrace.api_types.responses import ProblemDetails
from headrace.bundles.refusal import Refusal
from headrace.dispatchers.events.dead_letters import DeadLetterNotFound
from headrace.errors import HeadraceError

log = logging.getLogger("headrace.server")

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:headrace:problem:"
SHOWN = 200
# How soon a caller may try again while the engine is away, in seconds.
RETRY_AFTER = "2"
# Something that the server would need has not been given to it.
KEYS_MISSING = 501


class Refused(Exception):
    """A request that cannot be served; it becomes a problem document."""

    def __init__(
        self,
        status: int,
        word: str,
        detail: str,
        *,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers = headers
        self.problem = ProblemDetails(
            type=PREFIX + word,
            title=word.replace("-", " ").capitalize(),
            status=status,
            detail=detail,
            field=field,
            value=None if value is None else shown(value),
            remedy=remedy,
        )

    def within(self, place: str) -> Refused:
        """Return the refusal as that of one part of a larger request."""
        field = self.problem.field
        self.problem.field = f"{place}.{field}" if field else place
        self.problem.detail = f"{place}: {self.problem.detail}"
        return self

    def response(self) -> Response:
        """Return the response."""
        return Response(
            msgspec.json.encode(self.problem),
            status_code=self.problem.status,
            media_type=MEDIA_TYPE,
            headers=self.headers,
        )


def shown(value: object) -> str:
    """Return a value as short, printable text."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(each if each.isprintable() else "�" for each in text[: SHOWN + 1])
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def invalid(detail: str, *, field: str | None = None, value: object = None) -> Refused:
    """Return the refusal of an invalid value."""
    return Refused(422, "invalid-input", detail, field=field, value=value, remedy=_remedy(detail))


def forbidden(
    detail: str, remedy: str, *, field: str | None = None, value: object = None
) -> Refused:
    """Return the refusal of what this caller may not do."""
    return Refused(403, "forbidden", detail, field=field, value=value, remedy=remedy)


# The status for each kind of error; the first that fits counts.
_STATUS: tuple[tuple[type[HeadraceError], int], ...] = (
    (errors.PayloadTooLarge, 413),
    (errors.UnknownSchedule, 404),
    (errors.UnknownWorkflow, 404),
    (errors.UnknownAlertRule, 404),
    (errors.UnknownDestination, 404),
    (errors.InvalidInput, 422),
    (errors.JobNotFound, 404),
    (errors.ArtifactNotFound, 404),
    (BulkNotFound, 404),
    (KeyNotFound, 404),
    (DeadLetterNotFound, 404),
    (errors.JobConflict, 409),
    (errors.JobFailed, 409),
    (errors.RecordConflict, 409),
    (errors.StorageFull, 507),
    (errors.EngineUnavailable, 503),
    (errors.SchemaTooNew, 503),
    (errors.MigrationNeeded, 503),
    (errors.MissingDriver, 501),
    (errors.MissingEncryptionKey, 501),
    (errors.SealRefused, 409),
)


def refused(error: HeadraceError) -> Refused:
    """Return the refusal for an error of Headrace."""
    if isinstance(error, Refusal):
        return Refused(
            error.status,
            error.word,
            str(error),
            field=error.field,
            value=error.value,
            remedy=error.remedy,
            headers=error.headers,
        )
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    detail = str(error)
    return Refused(
        status,
        _word(type(error)),
        detail if status != 500 else "the engine could not do what was asked",
        remedy=_remedy(detail) if status < 500 or status == KEYS_MISSING else None,
        headers={"Retry-After": RETRY_AFTER} if status == 503 else None,
    )


def unreadable(error: Exception) -> Refused:
    """Return the refusal for a body that cannot be decoded."""
    match error:
        case msgspec.ValidationError():
            text, _, path = str(error).partition(" - at `")
            field = path.rstrip("`").removeprefix("$").lstrip(".") or None
            if missing := re.fullmatch(r"Object missing required field `(.+)`", text):
                field = f"{field}.{missing[1]}" if field else missing[1]
            return Refused(422, "invalid-input", text, field=field)
        case RecursionError():
            return Refused(422, "invalid-input", "the JSON is nested too deeply")
        case _:
            return Refused(
                400, "malformed-json", f"the body is not valid JSON: {error}", remedy="send JSON"
            )


def install(api: FastAPI) -> None:
    """Turn every error of an application into a problem document."""
    for kind in (
        Refused,
        HeadraceError,
        RequestValidationError,
        HTTPException,
        ClientDisconnect,
        Exception,
    ):
        api.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    match error:
        case Refused():
            refusal = error
        case HeadraceError():
            refusal = refused(error)
            if refusal.problem.status == 500:
                log.error("unexpected %s: %s", type(error).__name__, error, exc_info=error)
        case RequestValidationError():
            first: Mapping[str, Any] = error.errors()[0]
            place, *path = [str(part) for part in first["loc"]]
            field = ".".join(path) or place
            detail = f"{place} parameter {field}: {first['msg']}"
            refusal = Refused(422, "invalid-input", detail, field=field, value=first.get("input"))
        case HTTPException():
            refusal = _of_http(request, error)
        case ClientDisconnect():
            refusal = Refused(400, "malformed-request", "the body ended early")
        case _:
            # Starlette raises it again after the response, so that the server logs the traceback.
            detail = "something went wrong here; see the server's log"
            refusal = Refused(500, "server-error", detail)
    return refusal.response()


def _of_http(request: Request, error: HTTPException) -> Refused:
    path = shown(request.url.path)
    match error.status_code:
        case 404:
            detail = f"there is nothing at {path}"
            return Refused(404, "not-found", detail, remedy="see /openapi.json")
        case 405:
            allowed = allowed_methods(request)
            return Refused(
                405,
                "method-not-allowed",
                f"{shown(request.method)} is not possible at {path}",
                remedy=f"use {allowed}",
                headers={"Allow": allowed},
            )
        case status:
            word = "malformed-request" if status < 500 else "server-error"
            return Refused(status, word, shown(str(error.detail)), headers=error.headers)


def allowed_methods(request: Request) -> str:
    """Return the methods of all routes at this path; a router names only those of the first."""
    found = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    # /jobs/bulk also looks like a job with that id; the first route is the one that is meant.
    meant = [route.methods or set() for route in found if route.path == found[0].path]
    return ", ".join(sorted(set().union(*meant)))


def _word(kind: type[Exception]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def _remedy(detail: str) -> str | None:
    """Our messages end in the remedy, after a semicolon."""
    _, separator, last = detail.rpartition("; ")
    return last if separator else None
