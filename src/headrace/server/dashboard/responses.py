"""Whole pages as responses: the frame, its headers, and what was said by the last action."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from headrace.server.dashboard.assets import style_source
from headrace.server.dashboard.bundle_pages import bundles_with_a_page
from headrace.server.dashboard.content_first import ContentFirst, paints
from headrace.server.dashboard.page import DashboardPage, Shown
from headrace.server.dashboard.render import render, with_token
from headrace.server.dashboard.session.guard import Visitor
from headrace.server.dashboard.visit import Visit

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {style_source()}",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types headrace",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # With no-referrer browsers say "Origin: null" of a form, which could come from anywhere.
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie, Headrace-Part",
}
THEMES = ("light", "dark")
SAID = "headrace-said"


def path_below(request: Request) -> str:
    """Return the path below the dashboard."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope["root_path"])


async def whole_page(
    request: Request,
    shown: Shown,
    visit: Visit,
    visitor: Visitor | None,
    page: DashboardPage | None,
    *,
    live: bool = True,
) -> Response:
    """Return a page in its frame."""
    title = shown.title or (page.title if page else "Headrace")
    theme = request.cookies.get("headrace-theme")
    said = request.cookies.get(SAID)
    rendered = await render(
        shown,
        visit,
        page=page,
        page_title=title,
        theme=theme if theme in THEMES else None,
        zone="utc" if request.cookies.get("headrace-zone") == "utc" else "local",
        visitor=visitor,
        live=live,
        said=said_before(said),
        bundles=bundles_with_a_page(request),
    )
    response = html_response(
        with_token(rendered.html, visitor.token if visitor else ""),
        shown.status,
        kind=ContentFirst if paints(request) else HTMLResponse,
    )
    if said is not None:
        response.delete_cookie(SAID, visit.root, samesite="strict")
    return response


def html_response(
    body: str, status: int = 200, *, kind: type[HTMLResponse] = HTMLResponse
) -> Response:
    """Return HTML with the headers that every page has."""
    return kind(body, status, headers=HEADERS)


def said_before(cookie: str | None) -> str | None:
    """Return what the last action said, from its cookie."""
    try:
        return None if cookie is None else msgspec.json.decode(bytes.fromhex(cookie), type=str)
    except ValueError:
        return None
