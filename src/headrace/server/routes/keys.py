"""API keys and the audit log: for admins."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import KeyRequest
from headrace.api_types.responses import AuditEntry, KeyView, NewKey
from headrace.server.auth.guard import caller_of, router
from headrace.server.filters import Limit
from headrace.server.http.body import read_json
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import service_of

steering = router("admin")


@steering.get("/keys", summary="List keys", **answers(page("keys", KeyView)))
async def find(request: Request) -> Response:
    """All keys, also revoked ones; never their secrets."""
    caller_of(request).check_unrestricted("keys")
    return listed("keys", await service_of(request).app.keys())


@steering.post("/keys", summary="Make a key", **answers(NewKey, 201), **accepts(KeyRequest))
async def create(request: Request) -> Response:
    """`secret` is shown this once. After the first key, every request needs one."""
    service, caller = service_of(request), caller_of(request)
    caller.check_unrestricted("keys")
    asked = await read_json(request, KeyRequest)
    key = await service.app.create_key(**msgspec.structs.asdict(asked))
    service.keys.forget()
    await service.audit.changed(caller, "key.create", key.id, name=key.name, scope=key.scope)
    return answer(key, 201)


@steering.delete("/keys/{key_id}", summary="Revoke a key", **answers(KeyView))
async def revoke(
    request: Request, key_id: Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
) -> Response:
    """It is refused from now on, by other server processes within two seconds."""
    service, caller = service_of(request), caller_of(request)
    caller.check_unrestricted("keys")
    key = await service.app.revoke_key(key_id)
    service.keys.forget()
    await service.audit.changed(caller, "key.revoke", key.id, name=key.name)
    return answer(key)


@steering.get("/audit", summary="Who changed what", **answers(page("entries", AuditEntry)))
async def audit(
    request: Request,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}:[0-9]{1,4}$")] = None,
    limit: Limit = 50,
) -> Response:
    """Every change that was made over this API, the newest first."""
    caller_of(request).check_unrestricted("changes")
    return answer(await service_of(request).audit.read(cursor=cursor, limit=limit))
