"""Signing in with an API key, and out again."""

from __future__ import annotations

import time
from collections import OrderedDict, deque

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from headrace.server.dashboard.action import read_form
from headrace.server.dashboard.session.guard import (
    COOKIES,
    DashboardState,
    NotSignedIn,
    check_origin,
    check_token,
    session_cookie,
    too_many_attempts,
    visitor_of,
)
from headrace.server.service import Service, service_of

# Wrong keys from one address in a minute. A key cannot be guessed; this spares the store.
MOST_ATTEMPTS = 10
MINUTE = 60.0
MOST_ADDRESSES = 1_000


class Attempts:
    """Counts wrong keys by address."""

    def __init__(self, _: Service) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an address that has tried too many."""
        times = self._times.get(address, deque())
        while times and times[0] < time.monotonic() - MINUTE:
            times.popleft()
        if len(times) >= MOST_ATTEMPTS:
            raise too_many_attempts()

    def wrong(self, address: str) -> None:
        """Count a wrong key."""
        self._times.setdefault(address, deque()).append(time.monotonic())
        self._times.move_to_end(address)
        while len(self._times) > MOST_ADDRESSES:
            self._times.popitem(last=False)


async def sign_in(request: Request, form: ImmutableMultiDict[str, str]) -> Response | None:
    """Begin a session, and go where the visitor wanted to; None if the key is wrong."""
    service = service_of(request)
    attempts, address = service.part(Attempts), request.client.host if request.client else ""
    attempts.check(address)
    key = await service.keys.find(form.get("key", "").strip())
    if key is None:
        attempts.wrong(address)
        return None
    root = request.scope["root_path"]
    old = session_cookie(request)
    sessions = service.part(DashboardState).sessions
    if old is not None:
        await sessions.end(old)
    session_id = await sessions.begin(key.id)
    response = RedirectResponse(root + local_path(form.get("back", "/")), 303)
    secure = is_secure(request)
    # __Host- is refused by browsers unless its path is /.
    outermost = root == "/ui"
    name = ("__Host-headrace" if outermost else "__Secure-headrace") if secure else "headrace"
    path = "/" if name.startswith("__Host-") else root
    response.set_cookie(
        name, session_id, path=path, secure=secure, httponly=True, samesite="strict"
    )
    return response


async def sign_out(request: Request) -> Response:
    """End the session, also in the store."""
    check_origin(request)
    form = await read_form(request)
    root = request.scope["root_path"]
    response = RedirectResponse(f"{root}/session", 303)
    try:
        visitor = await visitor_of(request)
    except NotSignedIn:
        return response
    check_token(visitor, form.get("token", ""))
    if visitor.session_id is not None:
        await service_of(request).part(DashboardState).sessions.end(visitor.session_id)
    for name in COOKIES:
        if name in request.cookies:
            path = "/" if name.startswith("__Host-") else root
            secure = name.startswith("__")
            response.delete_cookie(name, path, secure=secure, httponly=True, samesite="strict")
    return response


def is_secure(request: Request) -> bool:
    """Return whether the browser uses https, also if a proxy in between does not."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https://")


def local_path(wanted: str) -> str:
    """Return a path below the dashboard; its beginning for anything else."""
    good = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if good and wanted.isprintable() else "/"
