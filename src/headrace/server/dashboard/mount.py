"""From declared pages and actions to an application below `/ui`."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import unquote

import msgspec
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route

from headrace.errors import HeadraceError
from headrace.server.dashboard.action import Act, DashboardAction, all_actions, read_form
from headrace.server.dashboard.assets import serve_asset
from headrace.server.dashboard.bundle_pages import METHODS, forward
from headrace.server.dashboard.live.stream import LiveStream, known_state
from headrace.server.dashboard.live.views import Parts
from headrace.server.dashboard.page import (
    DashboardFile,
    DashboardPage,
    Shown,
    all_files,
    all_pages,
)
from headrace.server.dashboard.refusals import explain, session_state, show_sign_in, take_key
from headrace.server.dashboard.render import render_parts, with_token
from headrace.server.dashboard.responses import (
    SAID,
    html_response,
    path_below,
    whole_page,
)
from headrace.server.dashboard.session.guard import (
    NotSignedIn,
    Visitor,
    check_origin,
    check_token,
    visitor_of,
)
from headrace.server.dashboard.session.sent_forms import ONCE_FIELD, SentForms, content
from headrace.server.dashboard.session.sign_in import local_path, sign_out
from headrace.server.dashboard.visit import Visit
from headrace.server.http.problems import Refused
from headrace.server.http.sse import check_room
from headrace.server.service import ServicePerLoop, service_of

log = logging.getLogger("headrace.server")

PREFIX = "/ui"


def mount_dashboard(api: FastAPI, service: ServicePerLoop) -> None:
    """Add the dashboard to the API's application."""
    ui = Starlette(
        routes=routes(),
        exception_handlers=dict.fromkeys(
            (Refused, HeadraceError, HTTPException, ClientDisconnect, NotSignedIn), explain
        )
        | {Exception: explain},
        # Rows of a list are alike, and become ten times smaller. Other sites cannot ask with our
        # strict cookie, so nobody guesses a token by the size of responses.
        middleware=[Middleware(GZipMiddleware, compresslevel=5)],
    )
    ui.router.redirect_slashes = False
    ui.state.headrace = service
    ui.state.api = api
    api.router.routes.append(Mount(PREFIX, ui, name="dashboard"))
    for path in ("/", PREFIX):
        api.router.routes.append(Route(path, to_dashboard, include_in_schema=False))


def routes() -> list[BaseRoute]:
    """Return every route. Pages and forms are behind the guard; the rest is listed here."""
    found: list[BaseRoute] = [
        Route("/static/{name}", serve_asset),
        Route("/session", show_sign_in, methods=["GET"]),
        Route("/session", take_key, methods=["POST"]),
        Route("/session/state", session_state),
        Route("/session/end", sign_out, methods=["POST"]),
        Route("/stream", _stream),
        # Where `../` leads from the page of a bundle, here and at its own path.
        Route("/bundles/", to_now, methods=["GET"]),
        Route("/bundles/{name}/{rest:path}", forward, methods=METHODS),
    ]
    # Before pages: a job's page would take /jobs/bulk for a job.
    found += [Route(each.path, _act(each), methods=["POST"]) for each in all_actions()]
    found += [Route(each.path, _send(each), methods=["GET"]) for each in all_files()]
    found += [Route(each.path, _show(each), methods=["GET"]) for each in all_pages()]
    return found


async def to_dashboard(request: Request) -> Response:
    """Lead people to the dashboard."""
    # Programs find nothing there, as before.
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return RedirectResponse(f"{request.scope.get('root_path', '')}{PREFIX}/", 303)


async def to_now(request: Request) -> Response:
    """Lead from the page of a bundle back to the dashboard."""
    return RedirectResponse(f"{request.scope['root_path']}/", 303)


# -- pages -----------------------------------------------------------------------------------------


def _show(page: DashboardPage) -> Any:
    async def show(request: Request) -> Response:
        visitor = await visitor_of(request)
        visit = _visit(
            request,
            visitor,
            page,
            params=request.path_params,
            query=request.query_params,
            path=path_below(request),
        )
        visit.opens = True
        shown = await page.look(visit)
        if part := request.headers.get("headrace-part"):
            return html_response(
                with_token((await render_parts(shown, visit)).get(part, ""), visitor.token)
            )
        return await whole_page(request, shown, visit, visitor, page)

    return show


def _send(file: DashboardFile) -> Any:
    async def send(request: Request) -> Response:
        visitor = await visitor_of(request)
        visit = Visit(
            service=service_of(request),
            caller=visitor.caller,
            root=request.scope["root_path"],
            path=path_below(request),
            params={name: str(value) for name, value in request.path_params.items()},
        )
        return await file.send(visit, request)

    return send


def _visit(
    request: Request,
    visitor: Visitor,
    page: DashboardPage,
    *,
    params: dict[str, Any],
    query: QueryParams,
    path: str,
) -> Visit:
    visit = Visit(
        service=service_of(request),
        caller=visitor.caller,
        root=request.scope["root_path"],
        path=path,
        params={name: str(value) for name, value in params.items()},
        query=query,
    )
    visit.check(page.scope)
    visit.check_query(page.query)
    return visit


# -- forms -----------------------------------------------------------------------------------------


def _act(action: DashboardAction) -> Any:
    async def act(request: Request) -> Response:
        check_origin(request)
        visitor = await visitor_of(request)
        root = request.scope["root_path"]
        form = await read_form(request)
        check_token(visitor, form.get("token", ""))
        acting = Act(
            service=service_of(request),
            caller=visitor.caller,
            root=root,
            path=path_below(request),
            params={name: str(value) for name, value in request.path_params.items()},
        )
        acting.form = form
        acting.check(action.scope)
        try:
            if once := form.get(ONCE_FIELD):
                key = (visitor.token, acting.path, once, content(form.multi_items()))
                sent = acting.service.part(SentForms)
                done = await sent.once(key, lambda: action.handle(acting))
            else:
                done = await action.handle(acting)
        finally:
            # Also if it was refused: some of it may be done.
            acting.service.forget_reads()
        if isinstance(done, Shown):
            return await whole_page(request, done, acting, visitor, None, live=False)
        to = done.to or root + local_path(form.get("back", "/"))
        response = RedirectResponse(to, 303)
        response.set_cookie(
            SAID,
            msgspec.json.encode(done.said[:500]).hex(),
            path=root,
            samesite="strict",
            httponly=True,
            max_age=60,
        )
        return response

    return act


# -- stream ----------------------------------------------------------------------------------------


async def _stream(request: Request) -> Response:
    service, visitor = service_of(request), await visitor_of(request)
    check_room(service)
    view = request.query_params.get("view", "/")
    path, _, query = view.partition("?")
    path = unquote(path)
    page, params = _find(path)
    visit = _visit(request, visitor, page, params=params, query=QueryParams(query), path=path)
    caller = visitor.caller

    async def look() -> Parts:
        return await render_parts(await page.look(visit), visit)

    who = caller.key_id if page.personal else None
    key = (path, query, visit.root, caller.scope, caller.queues, caller.user, who)
    return LiveStream(service, visitor, key, look, state=known_state(request))


def _find(path: str) -> tuple[DashboardPage, dict[str, Any]]:
    for page in all_pages():
        match, child = Route(page.path, _stream).matches(
            {"type": "http", "path": path, "root_path": "", "method": "GET"}
        )
        if match is Match.FULL:
            return page, child["path_params"]
    raise Refused(404, "not-found", f"there is no page {path[:100]!r}")
