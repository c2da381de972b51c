"""Pause and resume queues."""

from __future__ import annotations

from datetime import UTC, datetime

from headrace.errors import InvalidSetting
from headrace.model.schedules.cron import find_zone
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.http.problems import invalid

# What a form offers, in seconds.
SPANS = {"1800": 1_800.0, "7200": 7_200.0}


@action("/queues/{name}/pause", scope="admin")
async def pause(act: Act) -> Done:
    """Start no more jobs of a queue: for some time, until a time, or until somebody resumes it."""
    name = act.params["name"]
    act.caller.check_queue(name)
    chosen = act.form.get("for", "")
    if chosen not in ("", "until", *SPANS):
        raise invalid("choose one of the times that the form offers", field="for", value=chosen)
    paused = await act.app.pause(
        name,
        reason=act.form.get("reason", "").strip() or None,
        until=typed_end(act, "the queue is resumed") if chosen == "until" else None,
        duration=SPANS.get(chosen),
        by=act.caller.name,
    )
    detail = {"reason": paused.paused_reason, "until": paused.paused_until}
    given = {field: value for field, value in detail.items() if value is not None}
    await act.changed("queue.pause", name, **given)
    end = "" if paused.paused_until is None else f" until {paused.paused_until:%Y-%m-%d %H:%M} UTC"
    return Done(f"Queue {name} is paused{end}. Running jobs go on.")


@action("/queues/{name}/resume", scope="admin")
async def resume(act: Act) -> Done:
    """Start the jobs of a queue again."""
    name = act.params["name"]
    act.caller.check_queue(name)
    await act.app.resume(name)
    await act.changed("queue.resume", name)
    return Done(f"Queue {name} is open.")


def typed_end(act: Act, what: str) -> datetime:
    """Return the time that was typed, on the clocks of the zone beside it."""
    text = act.form.get("until", "").strip()
    if not text:
        raise invalid(f"choose the time at which {what}", field="until")
    try:
        zone = find_zone(act.form.get("zone", "").strip() or "UTC")
    except InvalidSetting as error:
        raise invalid(str(error), field="zone") from None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        detail = 'write a time such as "2026-01-31 08:00"'
        raise invalid(detail, field="until", value=text) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
