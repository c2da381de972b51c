"""Close circuit breakers by hand."""

from __future__ import annotations

from headrace.model.names import check_name, check_text
from headrace.server.dashboard.action import Act, Done, action


@action("/breakers/close", scope="admin")
async def close(act: Act) -> Done:
    """Start the jobs of a lane again."""
    queue = check_name("queue", act.form.get("queue", ""))
    lane = check_text("lane", act.form.get("lane", ""))
    act.caller.check_queue(queue)
    if not await act.app.close_breaker(queue, lane):
        return Done(f"The breaker of {queue}/{lane} was closed already.")
    await act.changed("breaker.close", f"{queue}/{lane}")
    return Done(f"The breaker of {queue}/{lane} is closed: its jobs are started again.")
