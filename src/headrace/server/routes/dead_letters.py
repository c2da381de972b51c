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
from headrace.server.auth.guard import caller_of, router
from headrace.server.auth.redact import Redactor
from headrace.server.http.body import read_optional_json
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
    found = await service.app.dead_letters(topic=topic, cursor=cursor, limit=limit)
    letters = [
        msgspec.convert(each, DeadLetterSummary, from_attributes=True)
        for each in found.dead_letters
    ]
    return listed("dead_letters", letters, found.cursor)


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
    done = await service.app.replay_dead_letter(letter_id)
    await service.audit.changed(caller, "dead-letter.replay", letter_id, job_id=done.job_id)
    return answer(done, 202)


@reading.get(
    "/dead-letters/{letter_id:path}",
    summary="Show a message that was set aside",
    **answers(DeadLetterView),
)
async def show(request: Request, letter_id: LetterId) -> Response:
    """With its content: `raw` is the message in base64."""
    service = _service(request)
    letter = await service.app.dead_letter(letter_id)
    letter.raw = _redacted(service.answers.redactor, letter.raw)
    return answer(letter)


@steering.delete(
    "/dead-letters/{letter_id:path}",
    summary="Remove a message",
    **answers(DeadLetterRemoved),
)
async def remove(request: Request, letter_id: LetterId) -> Response:
    """For good."""
    service, caller = _service(request), caller_of(request)
    await service.app.remove_dead_letter(letter_id)
    await service.audit.changed(caller, "dead-letter.remove", letter_id)
    return answer(DeadLetterRemoved(letter_id))


def _service(request: Request) -> Service:
    caller_of(request).check_unrestricted("dead letters")
    return service_of(request)


def _redacted(redactor: Redactor, raw: bytes) -> bytes:
    try:
        return redactor.json(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw  # not JSON, so it has no fields
