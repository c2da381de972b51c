"""A form that makes a new job of the arguments of another."""

from __future__ import annotations

import asyncio

from headrace.model.job import Job
from headrace.server.dashboard.jobs.form import CopyForm, Typed, named
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.http.problems import Refused


@page("/jobs/{job_id}/copy", title="New job", scope="write")
async def copy(visit: Visit) -> Shown:
    """Show the arguments, apart from hidden values, which have to be filled in again."""
    form = await copy_form(visit, await visit.job(visit.params["job_id"]))
    typed = Typed(queue=form.job.queue, priority=str(form.job.priority))
    return shown_form(form, typed, form.text)


async def copy_form(visit: Visit, job: Job) -> CopyForm:
    """Return the form; of large arguments in a thread."""
    if visit.service.answers.sealing is not None:
        job = visit.service.answers.opened(job)
    return await asyncio.to_thread(CopyForm, job, visit.redactor)


def shown_form(form: CopyForm, typed: Typed, text: str, refusal: Refused | None = None) -> Shown:
    """Return the page, with what was typed and what is wrong with it."""
    problem, field = (None, None) if refusal is None else named(refusal)
    return Shown(
        "jobs/job_copy.html",
        title=f"New job like {form.job.task} {form.job.id[-6:]}",
        status=200 if refusal is None else refusal.problem.status,
        form=form,
        job=form.job,
        typed=typed,
        text=text,
        problem=problem,
        field=field,
    )
