"""Set and remove rates, hold lanes and queues, and end holds."""

from __future__ import annotations

from headrace.errors import InvalidSetting
from headrace.model.limits.rate import as_rate
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.actions.queues import typed_end
from headrace.server.http.problems import invalid
from headrace.server.routes.limits.rates import target

# What a form offers, in seconds.
SPANS = {"600": 600.0, "3600": 3_600.0}


@action("/rates/set", scope="admin")
async def set_rate(act: Act) -> Done:
    """Let so many jobs of a lane, or of a queue, start in a time."""
    queue, lane = _place(act)
    text, burst = act.form.get("starts", "").strip(), act.form.get("burst", "").strip()
    if burst and not burst.isdecimal():
        detail = "burst must be a whole number of jobs that start at once; leave it empty for what "
        raise invalid(detail + "0.2 s hold", field="burst", value=burst)
    try:
        rate = as_rate(text, int(burst) if burst else None)
    except InvalidSetting as error:
        raise invalid(str(error), field="starts", value=text) from None
    await act.app.set_rate(queue, rate, lane=lane)
    await act.changed("rate.set", target(queue, lane), rate=rate.text, burst=rate.burst)
    return Done(f"Jobs of {_name(queue, lane)} start {rate.words}.")


@action("/rates/remove", scope="admin")
async def remove_rate(act: Act) -> Done:
    """Take back the rate that was set."""
    queue, lane = _place(act)
    left = (await act.app.remove_rate(queue, lane=lane)).rate
    await act.changed("rate.remove", target(queue, lane))
    now = "It has none now" if left is None else f"Its jobs say {left.words}"
    return Done(f"The rate of {_name(queue, lane)} is removed. {now}.")


@action("/rates/hold", scope="admin")
async def hold(act: Act) -> Done:
    """Start nothing of a lane, or of a queue, for some time or until a time."""
    queue, lane = _place(act)
    chosen = act.form.get("for", "")
    if chosen not in ("until", *SPANS):
        raise invalid("choose one of the times that the form offers", field="for", value=chosen)
    held = await act.app.hold(
        queue,
        lane=lane,
        until=typed_end(act, "the hold ends") if chosen == "until" else None,
        duration=SPANS.get(chosen),
        reason=act.form.get("reason", "").strip() or None,
        by=act.caller.name,
    )
    why = {} if held.held_reason is None else {"reason": held.held_reason}
    await act.changed("rate.hold", target(queue, lane), until=held.held_until, **why)
    until = "" if held.held_until is None else f" before {held.held_until:%Y-%m-%d %H:%M:%S} UTC"
    return Done(f"Nothing of {_name(queue, lane)} starts{until}. Running jobs go on.")


@action("/rates/release", scope="admin")
async def release(act: Act) -> Done:
    """End a hold."""
    queue, lane = _place(act)
    await act.app.release_hold(queue, lane=lane)
    await act.changed("rate.release", target(queue, lane))
    return Done(f"Jobs of {_name(queue, lane)} may start again.")


def _place(act: Act) -> tuple[str, str]:
    """Return the queue, which has to be this caller's, and the lane."""
    queue, lane = act.form.get("queue", ""), act.form.get("lane", "")
    act.caller.check_queue(queue)
    return queue, lane


def _name(queue: str, lane: str) -> str:
    return f"lane {lane}" if lane else f"queue {queue}"
