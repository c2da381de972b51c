"""Change one job, or make another one of it."""

from __future__ import annotations

import msgspec

from headrace.errors import HeadraceError
from headrace.server.auth.reach import enqueue
from headrace.server.build_job import check_copy, make_copy
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.actions.jobs import REASON
from headrace.server.dashboard.jobs.form import Typed, parsed
from headrace.server.dashboard.page import Shown
from headrace.server.dashboard.pages.jobs.copy_job import copy_form, shown_form
from headrace.server.http.problems import Refused, refused

LONGEST_REASON = 500


@action("/jobs/{job_id}/retry", scope="write")
async def retry(act: Act) -> Done:
    """Run it again, or from one of its stages on."""
    job = await act.own_job(act.params["job_id"])
    stage = act.form.get("from_stage") or None
    await act.reach.check_retry(job)
    await act.app.retry(job.id, from_stage=stage)
    detail = {} if stage is None else {"from": stage}
    await act.changed("job.retry", job.id, **detail)
    return Done("It runs again." if stage is None else f"It runs again from stage {stage}.")


@action("/jobs/{job_id}/cancel", scope="write")
async def cancel(act: Act) -> Done:
    """Cancel it, and the children that it made."""
    job = await act.own_job(act.params["job_id"])
    reason = act.form.get("reason", "").strip()[:LONGEST_REASON] or REASON
    now = await act.app.cancel(job.id, reason)
    await act.changed("job.cancel", job.id, reason=reason)
    return Done("It is cancelled." if now.status.final else "It was asked to stop.")


@action("/jobs/{job_id}/signal", scope="write")
async def signal(act: Act) -> Done:
    """Deliver an event that it waits for."""
    job = await act.own_job(act.params["job_id"])
    event = act.form.get("event", "")
    value = parsed("value", act.form.get("value", "").strip() or "null")
    await act.reach.check_named("value", msgspec.json.encode(value))
    if await act.app.signal(job.id, event, value) != "delivered":
        return Done(f"Event {event} was delivered before: the first one counts.")
    await act.changed("job.signal", job.id, event=event)
    return Done(f"Event {event} is delivered.")


@action("/jobs/{job_id}/copy", scope="write")
async def copy(act: Act) -> Done | Shown:
    """Enqueue a job with these arguments, or show the form again with what is wrong."""
    service, caller = act.service, act.caller
    job = await act.own_job(act.params["job_id"])
    form = await copy_form(act, job)
    typed = Typed.of(act.form)
    try:
        asked = form.request(act.form, typed.given())
        await check_copy(service, caller, asked)
        new = make_copy(service, caller, form.base, asked)
    except Refused as refusal:
        return shown_form(form, typed, act.form.get("args", ""), refusal)
    except HeadraceError as error:
        return shown_form(form, typed, act.form.get("args", ""), refused(error))
    made = await enqueue(service, caller, new)
    if made.id != new.id:
        return Done("A job with this key was there already.", to=act.url("/jobs", made.id))
    await act.changed("job.copy", made.id, of=job.id)
    return Done("This is the new job.", to=act.url("/jobs", made.id))
