"""For operators: schedules, messages of brokers that made no job, API keys, the audit log."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.job import JobBody
from headrace.api_types.requests import (
    NAME,
    TEXT,
    EmptyRequest,
    KeyRequest,
    ScheduleRequest,
    TriggerRequest,
)
from headrace.api_types.responses import (
    AuditEntry,
    DeadLetterRemoved,
    DeadLetterSummary,
    DeadLetterView,
    KeyView,
    NewKey,
    Replayed,
    ScheduleRemoved,
    ScheduleTimes,
    ScheduleView,
)
from headrace.dispatchers.events.dead_letters import DeadLetterNotFound
from headrace.errors import InvalidInput
from headrace.server.auth.audit_pages import AuditFilter
from headrace.server.filters import Limit, Text, Time, parse_time
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router
from headrace.server.service import Service

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

# -- schedules ---------------------------------------------------------------------------------

Name = Annotated[str, Path(pattern=NAME)]


@reading("GET /schedules", "List schedules", page("schedules", ScheduleView), name="find")
async def find_schedules(call: Call) -> Response:
    """Every schedule in words, with its next times and its last jobs."""
    service = call.unrestricted("schedules")
    found = await service.app.list_schedules()
    return listed("schedules", [_redacted(service, each) for each in found])


@reading("GET /schedules/{name}", "Show a schedule", ScheduleView, name="show")
async def show_schedule(call: Call, name: Name) -> Response:
    """One schedule, with its next five times and its last jobs."""
    service = call.unrestricted("schedules")
    return answer(_redacted(service, await service.app.get_schedule(name)))


@steering("PUT /schedules/{name}", "Add or change a schedule", ScheduleView, ScheduleRequest)
async def put(call: Call, name: Name) -> Response:
    """It fires from its next time on. The arguments are checked against the task."""
    service = call.unrestricted("schedules")
    asked = await read_json(call, ScheduleRequest)
    given = msgspec.structs.asdict(asked)
    try:
        view = await service.app.put_schedule(name, source="api", **given)
    except InvalidInput as error:
        hide = service.answers.redactor.refusal
        error.args = (hide(str(error), msgspec.json.encode(asked.params)),)
        raise
    await call.changed("schedule.put", name, expression=asked.expression)
    return answer(_redacted(service, view))


@steering("DELETE /schedules/{name}", "Remove a schedule", ScheduleRemoved, name="remove")
async def remove_schedule(call: Call, name: Name) -> Response:
    """Jobs that it has made stay. One that is declared in code comes back with the dispatcher."""
    await call.unrestricted("schedules").app.remove_schedule(name)
    await call.changed("schedule.remove", name)
    return answer(ScheduleRemoved(name))


@steering("POST /schedules/{name}/enable", "Enable a schedule", ScheduleView, EmptyRequest)
async def enable(call: Call, name: Name) -> Response:
    """It fires again, from its next time on."""
    return await _enable(call, name, enabled=True)


@steering("POST /schedules/{name}/disable", "Disable a schedule", ScheduleView, EmptyRequest)
async def disable(call: Call, name: Name) -> Response:
    """It does not fire. Times that pass meanwhile are skipped."""
    return await _enable(call, name, enabled=False)


async def _enable(call: Call, name: str, *, enabled: bool) -> Response:
    service = call.unrestricted("schedules")
    await read_optional_json(call, EmptyRequest)
    view = await service.app.enable_schedule(name, enabled)
    await call.changed("schedule.enable" if enabled else "schedule.disable", name)
    return answer(_redacted(service, view))


@steering(
    "POST /schedules/{name}/trigger",
    "Make a job of a schedule now",
    JobBody,
    TriggerRequest,
    status=202,
)
async def trigger(call: Call, name: Name) -> Response:
    """Beside its own times. 409 if it allows no overlap and a job of it is unfinished."""
    service = call.unrestricted("schedules")
    asked = await read_optional_json(call, TriggerRequest)
    job = await service.app.trigger_schedule(name, source="api", force=asked.force)
    await call.changed("schedule.trigger", name, job_id=job.id)
    return answer(service.answers.job(job), 202)


@reading("GET /schedules/{name}/next", "Its next times", ScheduleTimes)
async def next_times(
    call: Call, name: Name, count: Annotated[int, Query(ge=1, le=1_000)] = 5
) -> Response:
    """When it fires next, in its own time zone and in UTC."""
    return answer(await call.unrestricted("schedules").app.next_times(name, count))


def _redacted(service: Service, view: ScheduleView) -> ScheduleView:
    view.params = service.answers.redactor.value(view.params)
    return view


# -- dead letters ------------------------------------------------------------------------------

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


# -- keys and the audit ------------------------------------------------------------------------


@steering("GET /keys", "List keys", page("keys", KeyView), name="find")
async def find_keys(call: Call) -> Response:
    """All keys, also revoked ones; never their secrets."""
    return listed("keys", await call.unrestricted("keys").app.keys())


@steering("POST /keys", "Make a key", NewKey, KeyRequest, status=201)
async def create(call: Call) -> Response:
    """`secret` is shown this once. After the first key, every request needs one."""
    service = call.unrestricted("keys")
    asked = await read_json(call, KeyRequest)
    key = await service.app.create_key(**msgspec.structs.asdict(asked))
    service.keys.forget()
    await call.changed("key.create", key.id, name=key.name, scope=key.scope)
    return answer(key, 201)


@steering("DELETE /keys/{key_id}", "Revoke a key", KeyView)
async def revoke(call: Call, key_id: Annotated[str, Path(pattern="^[0-9a-f]{16}$")]) -> Response:
    """It is refused from now on, by other server processes within two seconds."""
    service = call.unrestricted("keys")
    key = await service.app.revoke_key(key_id)
    service.keys.forget()
    await call.changed("key.revoke", key.id, name=key.name)
    return answer(key)


@steering("GET /audit", "Who changed what", page("entries", AuditEntry))
async def audit(  # noqa: PLR0917 - FastAPI gives them by name
    call: Call,
    who: Text = None,
    action: Text = None,
    target: Text = None,
    since: Time = None,
    until: Time = None,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}:[0-9]{1,4}$")] = None,
    limit: Limit = 50,
) -> Response:
    """Every change that was made over this API, the newest first. `who` is the name, the id or the
    user of a key; `action` is one, such as `queue.pause`, or all of a noun, such as `queue`. A page
    may be short, or empty, although there are more: its cursor says where to go on.
    """
    log = call.unrestricted("changes").audit
    wanted = AuditFilter(
        who=who,
        action=action,
        target=target,
        since=parse_time("since", since),
        until=parse_time("until", until),
    )
    return answer(await log.read(wanted, cursor=cursor, limit=limit))
