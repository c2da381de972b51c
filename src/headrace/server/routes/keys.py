"""API keys and the audit log: for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.admin import keys
from headrace.api_types.requests import KeyRequest
from headrace.api_types.responses import AuditEntry, KeyView, NewKey
from headrace.server.auth.guard import caller_of, router
from headrace.server.filters import Limit
from headrace.server.http.body import read_json
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import service_of

steering = router("admin")


@steering.get("/keys", summary="List keys", **answers(page("keys", KeyView)))
async def find(request: Request) -> Response:
    """All keys, also revoked ones; never their secrets."""
    caller_of(request).check_unrestricted("keys")
    return listed("keys", [key.view() for key in await keys.list_keys(service_of(request).app)])


@steering.post("/keys", summary="Make a key", **answers(NewKey, 201), **accepts(KeyRequest))
async def create(request: Request) -> Response:
    """`secret` is shown this once. After the first key, every request needs one."""
    service, caller = service_of(request), caller_of(request)
    caller.check_unrestricted("keys")
    asked = await read_json(request, KeyRequest)
    key, secret = await keys.create_key(
        service.app,
        name=asked.name,
        scope=asked.scope,
        user=asked.user,
        queues=asked.queues,
        rate=asked.rate,
    )
    service.keys.forget()
    await service.audit.changed(caller, "key.create", key.id, name=key.name, scope=key.scope)
    return answer(key.new_view(secret), 201)


@steering.delete("/keys/{key_id}", summary="Revoke a key", **answers(KeyView))
async def revoke(
    request: Request, key_id: Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
) -> Response:
    """It is refused from now on, by other server processes within two seconds."""
    service, caller = service_of(request), caller_of(request)
    caller.check_unrestricted("keys")
    try:
        key = await keys.revoke_key(service.app, key_id)
    except keys.KeyNotFound as error:
        raise Refused(404, "key-not-found", str(error)) from None
    service.keys.forget()
    await service.audit.changed(caller, "key.revoke", key.id, name=key.name)
    return answer(key.view())


@steering.get("/audit", summary="Who changed what", **answers(page("entries", AuditEntry)))
async def audit(
    request: Request,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}:[0-9]{1,4}$")] = None,
    limit: Limit = 50,
) -> Response:
    """Every change that was made over this API, the newest first."""
    caller_of(request).check_unrestricted("changes")
    return answer(await service_of(request).audit.read(cursor=cursor, limit=limit))
