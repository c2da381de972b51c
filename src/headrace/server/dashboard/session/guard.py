"""Who looks: by the cookie of a session, or on this machine where there are no keys."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request

from headrace.server.auth.caller import Caller
from headrace.server.auth.guard import LOCAL, caller_of, check_local
from headrace.server.dashboard.session.store import Sessions
from headrace.server.http.problems import Refused, forbidden
from headrace.server.service import Service, service_of

# Browsers hold __Host- to the whole host, and both of the first to https.
COOKIES = ("__Host-headrace", "__Secure-headrace", "headrace")
TOKEN_FIELD = "token"  # noqa: S105 - the name of the field


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks, and the token that this visitor's forms carry."""

    caller: Caller
    token: str
    session_id: str | None = None


class NotSignedIn(Exception):
    """There are keys, but no session."""


class DashboardState:
    """What the dashboard of one server keeps."""

    def __init__(self, service: Service) -> None:
        self.sessions = Sessions(service.app)
        # Forms of visitors without a session, where there are no keys.
        self.secret = secrets.token_urlsafe(32)


async def visitor_of(request: Request) -> Visitor:
    """Return who sent the request. Raises `NotSignedIn`."""
    service = service_of(request)
    state = service.part(DashboardState)
    if not await service.keys.exist():
        check_local(request)
        return Visitor(caller=LOCAL, token=_token(state.secret))
    session_id = session_cookie(request)
    session = await state.sessions.find(session_id) if session_id else None
    key = await service.keys.by_id(session.key_id) if session else None
    if session_id is None or key is None:
        raise NotSignedIn
    service.rate_limit.check(key)
    return Visitor(caller=caller_of(key), token=_token(session_id), session_id=session_id)


async def still_welcome(service: Service, visitor: Visitor) -> bool:
    """Return whether somebody who was let in may still look."""
    if visitor.session_id is None:
        return not await service.keys.exist()
    session = await service.part(DashboardState).sessions.find(visitor.session_id)
    return session is not None and await service.keys.valid(session.key_id)


def session_cookie(request: Request) -> str | None:
    """Return the id of the session in a cookie."""
    return next((found for name in COOKIES if (found := request.cookies.get(name))), None)


def _token(secret: str) -> str:
    return hmac.new(secret.encode(), b"headrace form", hashlib.sha256).hexdigest()


def check_origin(request: Request) -> None:
    """Refuse a form that was sent by a page of another origin."""
    if request.headers.get("sec-fetch-site") == "same-origin":
        return
    origin = request.headers.get("origin", "")
    if not origin or urlsplit(origin).netloc != request.headers.get("host"):
        raise forbidden(
            "this form was not sent by a page of this dashboard",
            "open the dashboard itself, and try again",
            field="Origin",
            value=origin,
        )


def check_token(visitor: Visitor, presented: str) -> None:
    """Refuse a form without the token of its visitor."""
    if not hmac.compare_digest(visitor.token.encode(), presented.encode()):
        raise forbidden(
            "this form is out of date, or was not made for you",
            "go back, reload the page, and try again",
            field=TOKEN_FIELD,
        )


def too_many_attempts() -> Refused:
    """Return the refusal of a caller who tries many keys."""
    return Refused(
        429,
        "too-many-requests",
        "too many wrong keys were tried from your address",
        remedy="wait a minute, and try again",
        headers={"Retry-After": "60"},
    )
