"""Messages of brokers that made no job."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import TEXT, EmptyRequest
from headrace.api_types.responses import (
    DeadLetterRemoved,
    DeadLetterSummary,
    DeadLetterView,
    Replayed,
)
from headrace.dispatchers.events.dead_letters import DeadLetter, DeadLetterNotFound, DeadLetters
from headrace.server.auth.guard import caller_of, router
from headrace.server.auth.redact import Redactor
from headrace.server.http.body import read_optional_json
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import Service, service_of

reading, steering = router("read"), router("admin")

# Names of topics may hold a slash.
LetterId = Annotated[str, Path(pattern=TEXT)]


@reading.get(
    "/dead-letters",
    summary="List messages that were set aside",
    **answers(page("dead_letters", DeadLetterSummary)),
)
async def find(
    request: Request,
    topic: Annotated[str | None, Query(pattern=TEXT)] = None,
    cursor: Annotated[str | None, Query(pattern=TEXT)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """By id, with the reason but without the message itself."""
    service = _service(request)
    letters = DeadLetters(service.app)
    found: list[DeadLetterSummary] = []
    after = cursor or ""
    while len(found) < limit and (some := await letters.page(after=after)):
        for letter in some:
            after = letter.id
            if topic in (None, letter.topic):
                found.append(_shown(letter))
            if len(found) == limit:
                break
    more = len(found) == limit and await letters.page(after=after, limit=1)
    return listed("dead_letters", found, after if more else None)


@steering.post(
    "/dead-letters/{letter_id:path}/replay",
    summary="Try a message again",
    **answers(Replayed, 202),
    **accepts(EmptyRequest, optional=True),
)
async def replay(request: Request, letter_id: LetterId) -> Response:
    """The letter is gone once its job is stored; if it still makes none, it stays."""
    service, caller = _service(request), caller_of(request)
    await read_optional_json(request, EmptyRequest)
    try:
        job = await DeadLetters(service.app).replay(letter_id)
    except DeadLetterNotFound as error:
        raise _not_found(error) from None
    await service.audit.changed(caller, "dead-letter.replay", letter_id, job_id=job.id)
    return answer(Replayed(job.id, job.created), 202)


@reading.get(
    "/dead-letters/{letter_id:path}",
    summary="Show a message that was set aside",
    **answers(DeadLetterView),
)
async def show(request: Request, letter_id: LetterId) -> Response:
    """With its content: `raw` is the message in base64."""
    service = _service(request)
    try:
        letter = await DeadLetters(service.app).get(letter_id)
    except DeadLetterNotFound as error:
        raise _not_found(error) from None
    raw = _redacted(service.answers.redactor, letter.raw)
    return answer(DeadLetterView(**msgspec.structs.asdict(_shown(letter)), raw=raw))


@steering.delete(
    "/dead-letters/{letter_id:path}",
    summary="Remove a message",
    **answers(DeadLetterRemoved),
)
async def remove(request: Request, letter_id: LetterId) -> Response:
    """For good."""
    service, caller = _service(request), caller_of(request)
    try:
        await DeadLetters(service.app).remove(letter_id)
    except DeadLetterNotFound as error:
        raise _not_found(error) from None
    await service.audit.changed(caller, "dead-letter.remove", letter_id)
    return answer(DeadLetterRemoved(letter_id))


def _service(request: Request) -> Service:
    caller_of(request).check_unrestricted("dead letters")
    return service_of(request)


def _not_found(error: DeadLetterNotFound) -> Refused:
    return Refused(404, "dead-letter-not-found", str(error))


def _shown(letter: DeadLetter) -> DeadLetterSummary:
    fields = msgspec.structs.asdict(letter)
    del fields["raw"], fields["known"]
    return DeadLetterSummary(**fields, kept_bytes=len(letter.raw))


def _redacted(redactor: Redactor, raw: bytes) -> bytes:
    try:
        return redactor.json(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw  # not JSON, so it has no fields
