"""Free a lane from the job that holds it."""

from __future__ import annotations

from headrace.model.ids import parse_id
from headrace.server.dashboard.action import Act, Done, action

REASON = "cancelled from the dashboard: it held its lane for long"


@action("/lanes/cancel-holder", scope="write")
async def cancel_holder(act: Act) -> Done:
    """Cancel the job that holds a lane."""
    job = await act.job(parse_id(act.form.get("id", "")))
    job = await act.app.cancel(job.id, REASON)
    await act.changed("job.cancel", job.id, reason=REASON)
    done = "is cancelled" if job.status.final else "was asked to stop"
    return Done(f"Job {job.id} of task {job.task} {done}.")
