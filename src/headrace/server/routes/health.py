"""Liveness, readiness, metrics, and the OpenAPI document."""

from __future__ import annotations

from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from headrace.api_types.responses import Health
from headrace.server.auth.guard import caller_of, router
from headrace.server.metrics import exposition
from headrace.server.openapi.registry import answers
from headrace.server.responses import answer
from headrace.server.service import service_of

open_, local = router("open"), router("local")


@open_.get("/healthz", summary="Is the process there?", **answers(Health))
async def healthz(_: Request) -> Response:
    """200 as long as the process responds at all."""
    return answer(Health())


@open_.get("/readyz", summary="Can it work?", **answers(Health))
async def readyz(request: Request) -> Response:
    """200 if the engine answers, else 503."""
    await service_of(request).snapshots.get()
    return answer(Health())


@local.get(
    "/metrics",
    summary="Numbers for Prometheus",
    **answers({"type": "string"}, media_type="text/plain"),
)
async def metrics(request: Request) -> Response:
    """The text format of Prometheus; a second old at most."""
    caller_of(request).check_unrestricted("metrics")
    content, kind = await exposition(service_of(request))
    return Response(content, headers={"Content-Type": kind})


@local.get("/openapi.json", summary="This document", **answers({"type": "object"}))
async def openapi(request: Request) -> Response:
    """The API as OpenAPI 3.1."""
    document = dict(request.app.openapi())
    if root := request.scope.get("root_path"):
        document["servers"] = [{"url": root}]
    return answer(document)


@local.get("/docs", summary="This document for people", response_class=HTMLResponse)
async def docs(request: Request) -> Response:
    """A page that lists every route. It loads nothing from anywhere."""
    return HTMLResponse(_page(request.app.openapi()))


def _page(document: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(route.get('x-access', ''))}</td>"
        f"<td><b>{escape(route['summary'])}.</b> {escape(route.get('description', ''))}</td></tr>"
        for path, routes in document["paths"].items()
        for method, route in routes.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Headrace API</title>"
        "<h1>Headrace API</h1><p>The whole of it, with every field: "
        "<a href=openapi.json>openapi.json</a></p><table border=1 cellpadding=6 "
        f"cellspacing=0><tr><th>method<th>path<th>needs<th>what</tr>{rows}</table></html>"
    )
