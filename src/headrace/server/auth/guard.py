"""Authentication and scopes: who sent a request, and what that caller may do."""

from __future__ import annotations

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from headrace.admin.keys import SCOPES
from headrace.api_types.requests import Scope
from headrace.errors import JobNotFound
from headrace.model.job import Job, JobFilter
from headrace.server.http.problems import Refused, forbidden
from headrace.server.service import service_of

# `local`: like read, but without a key on this machine. `open`: without a key, everywhere.
Access = Scope | Literal["local", "open"]

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent the request. `queues` empty means all."""

    name: str
    scope: Scope
    key_id: str | None = None
    user: str | None = None
    queues: frozenset[str] = frozenset()

    def may_touch(self, queue: str) -> bool:
        """Return whether this caller may use a queue."""
        return not self.queues or queue in self.queues

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that this caller may not use."""
        if not self.may_touch(queue):
            raise forbidden(
                f"this key may not use queue {queue!r}",
                f"use one of {', '.join(sorted(self.queues))}, or a key for this queue",
                field="queue",
                value=queue,
            )

    def check_unrestricted(self, what: str) -> None:
        """Refuse a key that is for some queues only."""
        if self.queues:
            raise forbidden(
                f"this key is for some queues only, and {what} concern all",
                "use a key without a restriction to queues",
            )

    def check_user(self, field: str, given: object) -> None:
        """Refuse what names another user than the one that this key acts for."""
        if str(given) != self.user:
            raise forbidden(
                f"this key acts for user {self.user!r} only",
                f"leave {field.rpartition('.')[2]} out, or use a key of that user",
                field=field,
                value=given,
            )

    def check_job(self, job: Job) -> Job:
        """A job of another queue does not exist for this caller."""
        if not self.may_touch(job.queue):
            raise JobNotFound(f"no job has the id {job.id}")
        return job

    def narrowed(self, wanted: JobFilter) -> JobFilter:
        """The same filter, within what this caller may see."""
        if not self.queues:
            return wanted
        for queue in wanted.queues:
            self.check_queue(queue)
        return (
            wanted
            if wanted.queues
            else msgspec.structs.replace(wanted, queues=tuple(sorted(self.queues)))
        )


LOCAL = Caller(name="local", scope="admin")
NOBODY = Caller(name="nobody", scope="read")


async def admit(request: Request, access: Access) -> Caller:
    """Return who sent the request; refuse those who lack the access."""
    if access == "open":
        return NOBODY
    service = service_of(request)
    presented = presented_key(request)
    if not await service.keys.exist():
        check_local(request)
        return LOCAL
    if presented is None:
        if access == "local" and is_local(request):
            return NOBODY
        raise _unauthorized(
            "a key is needed",
            "send Authorization: Bearer hr_…; make one with: headrace keys create",
        )
    key = await service.keys.find(presented)
    if key is None:
        raise _unauthorized(
            "this key is not valid: it is wrong, or was revoked",
            "make one with: headrace keys create",
        )
    needed: Scope = "read" if access == "local" else access
    if SCOPES.index(key.scope) < SCOPES.index(needed):
        raise forbidden(
            f"this needs a key with scope {needed}, but this one has {key.scope}",
            f"make one with: headrace keys create --scope {needed}",
        )
    service.rate_limit.check(key)
    return Caller(
        name=key.name,
        scope=key.scope,
        key_id=key.id,
        user=key.user,
        queues=frozenset(key.queues),
    )


def _unauthorized(detail: str, remedy: str) -> Refused:
    challenge = {"WWW-Authenticate": 'Bearer realm="headrace"'}
    return Refused(401, "unauthorized", detail, remedy=remedy, headers=challenge)


def presented_key(request: Request) -> str | None:
    """Return the key in the headers. `X-API-Key` leaves `Authorization` to a proxy's own login."""
    headers = request.headers
    key = headers.get("x-api-key")
    if key is None:
        scheme, _, value = headers.get("authorization", "").partition(" ")
        key = value.strip() if scheme.lower() == "bearer" else None
    return key or None


def check_local(request: Request) -> None:
    """Without keys the API is open to this machine alone, and not to web pages opened on it."""
    if not is_local(request):
        raise forbidden(
            "this server has no keys, so it answers only to programs on its own machine",
            "make a key there with: headrace keys create --scope admin",
        )
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise forbidden(
            "this server has no keys, so it answers to no web page of another origin",
            "make a key with: headrace keys create",
            field="Origin",
            value=origin,
        )


def is_local(request: Request) -> bool:
    """Return whether a program on this machine asks, not a proxy, and by a local name."""
    client = request.client
    return (
        (client is None or _loopback(client.host))
        and not any(name in request.headers for name in _FORWARDED)
        # A page of another site whose name was made to lead here (DNS rebinding) says its name.
        and _loopback(_host(request.headers.get("host", "localhost")))
    )


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
