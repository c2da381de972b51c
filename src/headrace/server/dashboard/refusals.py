"""Sign-in, and pages for what goes wrong."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from headrace.errors import HeadraceError
from headrace.server.auth.guard import NOBODY
from headrace.server.dashboard.action import read_form
from headrace.server.dashboard.page import Shown
from headrace.server.dashboard.responses import html_response, path_below, whole_page
from headrace.server.dashboard.session.guard import NotSignedIn, check_origin, visitor_of
from headrace.server.dashboard.session.sign_in import local_path, sign_in
from headrace.server.dashboard.visit import Visit
from headrace.server.http.problems import Refused, refused
from headrace.server.service import service_of


async def show_sign_in(request: Request) -> Response:
    """Show the page that asks for a key, if there are keys."""
    if not await service_of(request).keys.exist():
        return RedirectResponse(request.scope["root_path"] + "/", 303)
    back = local_path(request.query_params.get("back", "/"))
    return await _sign_in_page(request, back)


async def session_state(request: Request) -> Response:
    """204 while the visitor may look: a browser's stream does not tell why it was refused."""
    try:
        await visitor_of(request)
    except NotSignedIn:
        return Response(status_code=401)
    return Response(status_code=204)


async def take_key(request: Request) -> Response:
    """Begin a session with the key in the form, or ask for another."""
    check_origin(request)
    form = await read_form(request)
    response = await sign_in(request, form)
    if response is not None:
        return response
    return await _sign_in_page(request, local_path(form.get("back", "/")), status=401)


async def _sign_in_page(request: Request, back: str, *, status: int = 200) -> Response:
    shown = Shown(
        "frame/sign_in.html", title="Sign in", status=status, back=back, wrong=status == 401
    )
    return await whole_page(request, shown, _nobody(request), None, None, live=False)


def _nobody(request: Request) -> Visit:
    root = request.scope["root_path"]
    return Visit(service=service_of(request), caller=NOBODY, root=root, path=path_below(request))


async def explain(request: Request, error: Exception) -> Response:
    """Make a page of an error, or lead to sign-in."""
    match error:
        case NotSignedIn():
            return _lead_to_sign_in(request)
        case Refused():
            refusal = error
        case HeadraceError():
            refusal = refused(error)
        case HTTPException(status_code=404):
            refusal = Refused(404, "not-found", f"there is no page {request.url.path[:100]!r}")
        case HTTPException():
            refusal = Refused(error.status_code, "malformed-request", str(error.detail))
        case ClientDisconnect():
            refusal = Refused(400, "malformed-request", "the form ended early")
        case _:
            # Starlette raises it again after the response, so that the server logs the traceback.
            detail = "something went wrong here; see the server's log"
            refusal = Refused(500, "server-error", detail)
    problem = refusal.problem
    try:
        visitor = await visitor_of(request)
    except (NotSignedIn, Refused, HeadraceError):
        visitor = None
    visit = _nobody(request)
    if visitor is not None:
        visit = Visit(
            service=visit.service,
            caller=visitor.caller,
            root=visit.root,
            path=visit.path,
            query=request.query_params,
        )
    shown = Shown("frame/problem.html", title=problem.title, status=problem.status, problem=problem)
    # The page comes back by itself when the engine does.
    live = problem.status == 503 and request.method == "GET"
    response = await whole_page(request, shown, visit, visitor, None, live=live)
    for name, value in (refusal.headers or {}).items():
        response.headers[name] = value
    return response


def _lead_to_sign_in(request: Request) -> Response:
    root = request.scope["root_path"]
    if request.url.path.endswith("/stream"):
        return html_response("", 401)
    if request.method != "GET":
        return html_response("Your session has ended. Sign in, and send the form again.", 403)
    visit = _nobody(request)
    visit.query = request.query_params
    return RedirectResponse(visit.url("/session", back=visit.here) if root else root, 303)
