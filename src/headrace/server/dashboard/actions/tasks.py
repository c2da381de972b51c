"""Run a task once."""

from __future__ import annotations

from headrace.api_types.requests import JobRequest
from headrace.errors import HeadraceError
from headrace.server.auth.reach import enqueue
from headrace.server.build_job import check_request, make_job
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.jobs.form import Typed
from headrace.server.dashboard.page import Shown
from headrace.server.dashboard.pages.tasks import known_task
from headrace.server.dashboard.tasks.form import TaskForm
from headrace.server.http.problems import Refused, refused


@action("/tasks/{name:path}/run", scope="write")
async def run(act: Act) -> Done | Shown:
    """Enqueue a job of the task, or show the form again with what is wrong in its fields."""
    service, caller = act.service, act.caller
    task = await known_task(act, act.params["name"])
    form = TaskForm(task, act.redactor)
    typed = Typed.of(act.form)
    problem: str | None = None
    arguments = form.read(act.form)
    try:
        options = typed.given()
        if arguments is not None:
            request = JobRequest(task=task.name, args=arguments, **options)
            await check_request(service, caller, request)
            new = make_job(service, caller, request)
    except Refused as refusal:
        problem = refusal.problem.detail
    except HeadraceError as error:
        problem = refused(error).problem.detail
    if problem is not None or arguments is None:
        return Shown(
            "tasks/task_run.html", title=f"Run {task.name}", status=422, name=task.name, task=task,
            form=form, typed=typed, problem=problem,
        )  # fmt: skip
    made = await enqueue(service, caller, new)
    if made.id != new.id:
        return Done("A job with this key was there already.", to=act.url("/jobs", made.id))
    service.audit.enqueued(caller, made.task, made.id)
    return Done("This is the new job.", to=act.url("/jobs", made.id))
