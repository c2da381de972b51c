"""The server itself: health, metrics, and the document of its API."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.responses import Health
from headrace.server.bundles.route import BundleRoute
from headrace.server.metrics import exposition
from headrace.server.openapi.document import document as document_of
from headrace.server.responses import answer
from headrace.server.routes.workflows import usable_workflows
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
open_, local = Router("open", routes), Router("local", routes)


@open_("GET /healthz", "Is the process there?", Health)
async def healthz(_: Call) -> Response:
    """200 as long as the process responds at all."""
    return answer(Health())


@open_("GET /readyz", "Can it work?", Health)
async def readyz(call: Call) -> Response:
    """200 if the engine answers, else 503."""
    await call.service.snapshots.get()
    return answer(Health())


@local("GET /metrics", "Numbers for Prometheus", {"type": "string"}, media_type="text/plain")
async def metrics(call: Call) -> Response:
    """The text format of Prometheus; a second old at most."""
    content, kind = await exposition(call.unrestricted("metrics"))
    return Response(content, headers={"Content-Type": kind})


@local("GET /openapi.json", "This document", {"type": "object"})
async def openapi(call: Call) -> Response:
    """The API as OpenAPI 3.1."""
    document = dict(call.app.openapi() if not call.caller.queues else _own_document(call))
    if root := call.scope.get("root_path"):
        document["servers"] = [{"url": root}]
    return answer(document)


def _own_document(call: Call) -> dict[str, Any]:
    """Return the document for a key for some queues: its tasks, its workflows, its bundles."""
    return document_of(
        call.app,
        call.reach.tasks(),
        lambda: usable_workflows(call.service, call.caller),
        lambda route: not isinstance(route, BundleRoute) or route.is_for(call.caller),
    )
