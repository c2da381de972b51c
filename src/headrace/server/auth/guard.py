"""Authentication and scopes: who sent a request, and what that caller may do."""

from __future__ import annotations

import ipaddress
import re
from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import Request

from headrace.admin.keys import SCOPES, Key
from headrace.api_types.requests import Scope
from headrace.server.auth.caller import Caller
from headrace.server.http.problems import Refused, forbidden
from headrace.server.service import service_of

# `local`: like read, but without a key on this machine. `open`: without a key, everywhere.
Access = Scope | Literal["local", "open"]

# What proxies, load balancers and tunnels add to the requests of others.
_FORWARDED = re.compile(
    r"forwarded|via|x-forwarded(-.*)?|x-real-ip|x-original-.*|x-(cluster-)?client-ip|x-envoy-.*"
    r"|x-amzn-.*|x-arr-.*|x-azure-.*|cf-.*|cdn-.*|true-client-ip|fastly-.*|ngrok-.*|tailscale-.*"
    r"|x-proxy.*|x-scheme|x-host|x-rewrite-url|proxy-.*|early-data|front-end-https"
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
    caller = caller_of(key)
    if access == "admin" and request.method not in ("GET", "HEAD"):
        caller.check_for_all("this")
    return caller


def caller_of(key: Key) -> Caller:
    """Return who a key stands for."""
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
        and not any(map(_FORWARDED.fullmatch, request.headers.keys()))
        # So nginx forwards by default, without a header that tells. Programs speak HTTP/1.1.
        and request.scope.get("http_version") != "1.0"
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
