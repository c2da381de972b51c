"""From an App to a FastAPI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI

from headrace.app import App
from headrace.server.bundles import add_bundles
from headrace.server.dashboard.mount import mount_dashboard
from headrace.server.http import problems
from headrace.server.http.body_limits import UPLOAD_LIMIT
from headrace.server.http.incoming_bodies import BODY_SECONDS, IncomingBodies
from headrace.server.http.request_spans import TracedRequests
from headrace.server.openapi import page
from headrace.server.openapi.document import document
from headrace.server.otlp import metrics_export
from headrace.server.routes import (
    alerts,
    bulk,
    dead_letters,
    job,
    jobs,
    kept_files,
    keys_and_audit,
    monitoring,
    publishing,
    queues,
    schedules,
    server,
    workers,
    workflows,
)
from headrace.server.routes.limits import breakers, rates
from headrace.server.routing import Prefix, SecurityHeaders
from headrace.server.service import Service, ServicePerLoop
from headrace.task.redact import DEFAULT
from headrace.tracing import find_tracing
from headrace.version import __version__

# Fixed paths before those with a job's id in the same place.
ROUTES = (
    *jobs.routes,
    *job.routes,
    *bulk.routes,
    *kept_files.routes,
    *queues.routes,
    *rates.routes,
    *breakers.routes,
    *workers.routes,
    *monitoring.routes,
    *server.routes,
    *page.routes,
    *schedules.routes,
    *dead_letters.routes,
    *keys_and_audit.routes,
    *publishing.routes,
    *alerts.routes,
    *workflows.routes,
)


def create(
    app: App,
    *,
    redact: Sequence[str] = DEFAULT,
    rate: float = 2_000.0,
    upload_limit: int = UPLOAD_LIMIT,
    user_argument: str | None = "user_id",
    most_streams: int = 2_000,
    dashboard: bool = True,
    root_path: str = "",
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """Return the HTTP API over an App, to be served alone or mounted in another application.

    `redact` names fields whose values are never shown. `rate` is how many requests a second a key
    may make, unless it has a rate of its own. A key with a user fills in, and is held to, the
    argument `user_argument` of tasks that have it. `dashboard` adds the pages below `/ui/`.
    `root_path` is the prefix under which a proxy serves it, whether or not the proxy removes it.
    `body_seconds` is how long a body may take, besides a second for each 16 KiB.
    """
    service = ServicePerLoop(
        partial(
            Service,
            app,
            redact=redact,
            rate=rate,
            upload_limit=upload_limit,
            user_argument=user_argument,
            most_streams=most_streams,
        )
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.get().bulk.start()
        service.get().depths.start()
        export = metrics_export(service.get())
        if export is not None:
            export.start()
        service.get().alerts.start()
        service.get().expiry.start()
        yield
        if export is not None:
            await export.stop()
        await service.get().close()

    api = FastAPI(
        title="Headrace",
        version=__version__,
        # FastAPI's pages have no key, and load scripts from elsewhere.
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # Newer versions make spans of their own, with the query in them, and count requests.
        # Older ones know no such option, and ignore it.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    api.state.headrace = service
    problems.install(api)
    api.add_middleware(IncomingBodies, seconds=body_seconds)
    api.add_middleware(SecurityHeaders)
    if (tracing := find_tracing(app.settings.tracing)) is not None:
        api.add_middleware(TracedRequests, tracing=tracing)
    if root_path.strip("/"):
        api.add_middleware(Prefix, root=f"/{root_path.strip('/')}")
    api.router.routes.extend(ROUTES)
    add_bundles(api, app)
    if dashboard:
        mount_dashboard(api, service)

    def openapi() -> dict[str, Any]:
        # Tasks may be registered at any time, so it is made when it is asked for.
        return document(api, app.tasks, app.workflows.all)

    api.openapi = openapi  # type: ignore[method-assign]
    return api
