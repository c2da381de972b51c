"""Workers, dispatchers and tasks: who is there, and what can be run."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.responses import DispatcherView, TaskView
from headrace.model.worker import Worker
from headrace.monitor.findings.facts import workers_within
from headrace.monitor.snapshot import dispatchers
from headrace.server.openapi.bodies import task_view
from headrace.server.openapi.registry import page
from headrace.server.responses import listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading = Router("read", routes)


@reading("GET /workers", "List workers", page("workers", Worker))
async def workers(call: Call) -> Response:
    """Workers, alive ones first."""
    found = await call.service.app.workers()
    return listed("workers", workers_within(found, call.caller.queues))


@reading("GET /dispatchers", "List dispatchers", page("dispatchers", DispatcherView))
async def find_dispatchers(call: Call) -> Response:
    """Cron and event dispatchers, when they last reported, and how far behind they are."""
    app = call.unrestricted("dispatchers").app
    await app.open()
    return listed("dispatchers", await dispatchers(app.engine, app.clock.utcnow()))


@reading("GET /tasks", "List tasks", page("tasks", TaskView))
async def tasks(call: Call) -> Response:
    """The tasks that can be enqueued here: their arguments as JSON schema, and their policy."""
    return listed("tasks", map(task_view, call.reach.tasks().values()))
