"""API keys, and the audit log: who may use the API, and who changed what."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import KeyRequest
from headrace.api_types.responses import AuditEntry, KeyView, NewKey
from headrace.server.auth.audit_pages import AuditFilter
from headrace.server.filters import Limit, Text, Time, parse_time
from headrace.server.http.body import read_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
steering = Router("admin", routes)


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
