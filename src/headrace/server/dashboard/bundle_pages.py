"""Pages of bundles for people who have signed in: a link cannot send a key."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from headrace.server.bundles.route import VISITOR
from headrace.server.dashboard.session.guard import NotSignedIn, visitor_of
from headrace.server.http.problems import Refused, forbidden
from headrace.server.service import service_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# "none" is an address that somebody typed.
OWN_SITES = (None, "same-origin", "none")
# The server's own, of the request that led here.
_KEPT = ("type", "asgi", "http_version", "method", "scheme", "query_string", "headers", "client",
         "server", "state", "extensions")  # fmt: skip


class Forwarded:
    """A response that the route of a bundle makes, as if it had been asked at its own path."""

    def __init__(self, api: Any, path: str, root: str, extra: dict[str, Any]) -> None:
        self._api = api
        self._changes = {"path": root + path, "raw_path": quote(root + path).encode(),
                         "root_path": root, **extra}  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, behind its own guard."""
        kept = {name: scope[name] for name in _KEPT if name in scope}
        await self._api(kept | self._changes, receive, send)


def bundles_with_a_page(request: Request) -> list[Any]:
    """Return the bundles that have a page."""
    app = service_of(request).app
    loaded = app.bundles if "bundles" in vars(app) else ()
    return [each.bundle for each in loaded if each.bundle.page is not None]


async def forward(request: Request) -> Any:
    """Let a bundle answer what its page asks. The session counts for reading; see `BundleRoute`."""
    name = request.path_params["name"]
    bundle = next((each for each in bundles_with_a_page(request) if each.name == name), None)
    if bundle is None:
        raise Refused(404, "not-found", f"there is no bundle {name[:100]!r} with a page")
    extra = {}
    # Who sends a key is not asked for a session; everything but reading needs a key.
    if request.method in ("GET", "HEAD") and "authorization" not in request.headers:
        if request.headers.get("sec-fetch-site") not in OWN_SITES:
            raise forbidden(
                "this was asked by a page of another site", "open it from the dashboard"
            )
        try:
            extra[VISITOR] = (await visitor_of(request)).caller
        except NotSignedIn:
            # A script reads the answer 401 of the route, and a person is led to sign in.
            if "text/html" in request.headers.get("accept", ""):
                raise
    root = request.scope["root_path"].removesuffix("/ui")
    path = f"{bundle.prefix}/{request.path_params['rest']}"
    return Forwarded(request.app.state.api, path, root, extra)
