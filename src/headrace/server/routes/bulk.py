"""Bulk actions that a server does in the background: list, show, stop, resume."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Annotated
from urllib.parse import parse_qs, urlencode

from fastapi import Path
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.admin.bulk import BulkNotFound, find
from headrace.api_types.bulk import BulkAction, BulkView
from headrace.api_types.requests import BulkRequest
from headrace.engine.bounded_reads import parts
from headrace.model.job import JobFilter
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.server.http.problems import forbidden
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router
from headrace.server.service import Service

routes: list[BaseRoute] = []
reading, writing = Router("read", routes), Router("write", routes)

BulkId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]


async def store(
    service: Service,
    caller: Caller,
    action: BulkAction,
    wanted: JobFilter,
    mark: str | None,
    *,
    cutoff: datetime | None,
    reason: str,
) -> BulkView:
    """Store an action of a caller with its audit entry, and let the runner begin with it."""
    made = await service.app.start_bulk(
        action,
        wanted,
        fingerprint=mark,
        cutoff=cutoff,
        reason=reason if action == "cancel" else None,
        who=caller.name,
        key_id=caller.key_id,
        user=caller.user,
        runs=not caller.queues,
        queues=caller.queues,
    )
    record, _ = await find(service.app.engine, made.id)
    await service.audit.background(made.id, record)
    begin(service)
    [shown] = await as_seen(service, caller, [made])
    return shown


async def start(call: Call, asked: BulkRequest, wanted: JobFilter, mark: str | None) -> Response:
    """Store an action, and let the runner of this server begin with it."""
    made = await store(
        call.service, call.caller, asked.action, wanted, mark,
        cutoff=asked.cutoff, reason=asked.reason,
    )  # fmt: skip
    place = f"{call.scope.get('root_path', '')}/bulk/{made.id}"
    return answer(made, 202, {"Location": place})


@reading("GET /bulk", "List bulk actions", page("bulk", BulkView))
async def find_all(call: Call) -> Response:
    """Those that run in the background, the newest first; old ones are deleted."""
    found = await call.service.app.bulk_actions()
    return listed("bulk", await as_seen(call.service, call.caller, found))


@reading("GET /bulk/{bulk_id}", "Show a bulk action", BulkView)
async def show(call: Call, bulk_id: BulkId) -> Response:
    """How far it is, and how it ended."""
    return answer(await seen_bulk(call.service, call.caller, bulk_id))


@writing("DELETE /bulk/{bulk_id}", "Stop a bulk action", BulkView)
async def stop(call: Call, bulk_id: BulkId) -> Response:
    """Jobs that were changed stay so; up to 500 more may be. 409 if it is over."""
    return await _changed(call, "bulk.stop", bulk_id, call.service.app.stop_bulk)


@writing("POST /bulk/{bulk_id}/resume", "Go on with a bulk action", BulkView)
async def resume(call: Call, bulk_id: BulkId) -> Response:
    """One that was stopped, or has failed. Else 409."""
    return await _changed(call, "bulk.resume", bulk_id, call.service.app.resume_bulk)


async def _changed(
    call: Call, action: str, bulk_id: str, change: Callable[[str], Awaitable[BulkView]]
) -> Response:
    bulk = await changeable(call.service, call.caller, bulk_id)
    changed = await change(bulk.id)
    await call.changed(action, bulk.id)
    begin(call.service)
    [shown] = await as_seen(call.service, call.caller, [changed])
    return answer(shown)


def begin(service: Service) -> None:
    """Let the runner look now. It does not run yet where the API is mounted in another one."""
    service.bulk.start()
    service.bulk.wake()


async def seen_bulk(service: Service, caller: Caller, bulk_id: str) -> BulkView:
    """Return an action as this caller sees it. Raises `BulkNotFound`."""
    bulk = await service.app.bulk_action(bulk_id)
    for shown in await as_seen(service, caller, [bulk]):
        return shown
    raise BulkNotFound(f"no bulk action has the id {bulk.id}")


async def changeable(service: Service, caller: Caller, bulk_id: str) -> BulkView:
    """Return an action that this caller may stop and resume. What a key for some queues has not
    begun may change runs with steps in other queues.
    """
    caller.check_for_all("a bulk action")
    bulk = await seen_bulk(service, caller, bulk_id)
    if caller.queues:
        record, _ = await find(service.app.engine, bulk.id)
        if not record.queues or not caller.queues.issuperset(record.queues):
            raise forbidden(
                f"bulk action {bulk.id} was not begun by a key for these queues",
                "use the key that began it, or one without a restriction to queues",
            )
    return bulk


async def as_seen(service: Service, caller: Caller, found: Iterable[BulkView]) -> list[BulkView]:
    """Return actions as a caller sees them. A key for some queues sees those on these only, without
    ids of hidden runs, and with idempotency keys as it gave them.
    """
    if not caller.queues:
        return list(found)
    own = [each for each in found if may_see(caller, each)]
    ids = sorted({job_id for each in own for job_id in each.ids})
    reach = Reach(service, caller)
    visible = {
        job.id async for some in parts(service.app.engine, ids) for job in await reach.visible(some)
    }
    for each in own:
        each.ids = [job_id for job_id in each.ids if job_id in visible]
        if each.filter.key and isinstance(each.filter.queue, list):
            queue = each.filter.queue[0]  # there is one: see `Caller.narrowed`
            each.filter.key = caller.given_key(each.filter.key, queue)
            path, _, query = each.jobs.partition("?")
            pairs = dict(parse_qs(query)) | {"key": [each.filter.key]}
            each.jobs = f"{path}?{urlencode(pairs, doseq=True)}"
    return own


def may_see(caller: Caller, bulk: BulkView) -> bool:
    """Return whether a caller may see an action: a key for some queues sees those on these only."""
    queues = bulk.filter.queue
    return not caller.queues or (isinstance(queues, list) and caller.queues.issuperset(queues))
