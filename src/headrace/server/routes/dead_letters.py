"""Dead letters: messages of brokers that made no job. List, show, replay, remove."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import TEXT, EmptyRequest
from headrace.api_types.responses import (
    DeadLetterRemoved,
    DeadLetterSummary,
    DeadLetterView,
    Replayed,
)
from headrace.dispatchers.events.dead_letters import DeadLetterNotFound
from headrace.errors import InvalidInput
from headrace.server.filters import Text
from headrace.server.http.body import read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router
from headrace.server.service import Service

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

# Names of topics may hold a slash.
LetterId = Annotated[str, Path(pattern=TEXT)]


@steering(
    "POST /dead-letters/{letter_id:path}/replay",
    "Try a message again",
    Replayed,
    EmptyRequest,
    status=202,
)
async def replay(call: Call, letter_id: LetterId) -> Response:
    """The letter is gone once its job is stored; if it still makes none, it stays."""
    service = call.unrestricted("dead letters")
    await read_optional_json(call, EmptyRequest)
    done = await replay_letter(service, letter_id)
    await call.changed("dead-letter.replay", letter_id, job_id=done.job_id)
    return answer(done, 202)


async def replay_letter(service: Service, letter_id: str) -> Replayed:
    """Try a message again. What is wrong with it is told without what is hidden in it."""
    try:
        return await service.app.replay_dead_letter(letter_id)
    except InvalidInput as error:
        letter = await service.app.dead_letter(letter_id)
        error.args = (service.answers.reason(str(error), letter.raw),)
        raise


def _check_id(letter_id: str) -> None:
    """Refuse what is meant for the route above, with another method: no id ends so."""
    if letter_id.endswith("/replay"):
        raise HTTPException(405)


@steering(
    "DELETE /dead-letters/{letter_id:path}", "Remove a message", DeadLetterRemoved, name="remove"
)
async def remove_letter(call: Call, letter_id: LetterId) -> Response:
    """For good."""
    _check_id(letter_id)
    await call.unrestricted("dead letters").app.remove_dead_letter(letter_id)
    await call.changed("dead-letter.remove", letter_id)
    return answer(DeadLetterRemoved(letter_id))


@reading(
    "GET /dead-letters",
    "List messages that were set aside",
    page("dead_letters", DeadLetterSummary),
    name="find",
)
async def find_letters(
    call: Call,
    topic: Text = None,
    cursor: Text = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """By id, with the reason but without the message itself."""
    service = call.unrestricted("dead letters")
    found = await service.app.dead_letters(topic=topic, cursor=cursor, limit=limit)
    for each in found.dead_letters:
        try:
            whole = await service.app.dead_letter(each.id)
        except DeadLetterNotFound:  # replayed meanwhile: nobody knows what to hide
            each.reason = ""
        else:
            each.reason = service.answers.reason(each.reason, whole.raw)
    letters = msgspec.convert(found.dead_letters, list[DeadLetterSummary], from_attributes=True)
    return listed("dead_letters", letters, found.cursor)


@reading(
    "GET /dead-letters/{letter_id:path}",
    "Show a message that was set aside",
    DeadLetterView,
    name="show",
)
async def show_letter(call: Call, letter_id: LetterId) -> Response:
    """With its content: `raw` is the message in base64."""
    _check_id(letter_id)
    service = call.unrestricted("dead letters")
    letter = await service.app.dead_letter(letter_id)
    letter.reason = service.answers.reason(letter.reason, letter.raw)
    letter.raw = service.answers.message(letter.raw)
    return answer(letter)
