"""Lanes: who holds a place, who waits for one, and how fast their jobs may start."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from headrace.model.limits.rate import RateView
from headrace.model.views import LaneView
from headrace.monitor.findings.lanes import held_long
from headrace.monitor.words import close_command
from headrace.server.auth.bound_key_counts import own_rates
from headrace.server.auth.reach import Reach
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.dashboard.words import moment_before
from headrace.server.routes.limits.breakers import own_breakers

MOST = 100
# So many rates are looked at, and MOST of them shown.
MOST_RATES = 1_000
# A wide lane may have many holders: a row names some of them.
MOST_HOLDERS = 3


@page("/lanes", title="Lanes", key="l", query=("queue", "lane", "blocked"))
async def lanes(visit: Visit) -> Shown:
    """Show lanes, those with the most waiting jobs first, and rates."""
    queue, lane = visit.query.get("queue") or None, visit.query.get("lane") or None
    allowed: list[str | None] = [*sorted(visit.caller.queues)] or [None]
    if queue is not None:
        visit.caller.check_queue(queue)
        allowed = [queue]
    found: list[LaneView] = []
    # A key for some queues: the engine bounds each answer, so each queue is asked by itself.
    for each in allowed:
        found += await visit.app.lanes(queue=each, lane=lane, limit=MOST)
    found.sort(key=lambda each: (-each.waiting, each.queue, each.lane))
    found = await Reach(visit.service, visit.caller).own_holders(found[:MOST])
    names = [holder for each in found for holder in each.holders[:MOST_HOLDERS]]
    holders = {job.id: job for job in await visit.app.engine.get(names)}
    long = {job.id for job in holders.values() if held_long(job, visit.now)}
    rates = await own_rates(visit.service, visit.caller, queue=queue, lane=lane, limit=MOST_RATES)
    of_lane = {(each.queue, each.lane): each for each in rates}
    shown = found[:MOST]
    broken = await visit.app.breakers(queue=queue, lane=lane)
    only_blocked = visit.query.get("blocked") == "yes"
    if only_blocked:
        shown = [each for each in shown if _blocked(each, long)]
    return Shown(
        "queues/lanes.html",
        lanes=[
            {
                "view": each,
                "oldest": moment_before(visit.now, each.oldest_age),
                "blocked": _blocked(each, long),
                "rate": of_lane.get((each.queue, each.lane)),
            }
            for each in shown
        ],
        long=long,
        tabs=[
            ("All", visit.again(blocked=None), not only_blocked),
            ("Blocked by one job", visit.again(blocked="yes"), only_blocked),
        ],
        only_blocked=only_blocked,
        more=len(found) >= MOST,
        most=MOST,
        holders=holders,
        most_holders=MOST_HOLDERS,
        queue=queue,
        lane=lane,
        key=None if queue is None or lane is None else rate_key(queue, lane, rates),
        rates=sorted(rates, key=_urgency)[:MOST],
        more_rates=len(rates) > MOST,
        all_rates=len(rates),
        most_rates=MOST_RATES,
        breakers=own_breakers(visit.caller, broken)[:MOST],
        close_command=close_command,
    )


def rate_key(queue: str, lane: str, rates: Sequence[RateView]) -> dict[str, Any]:
    """Return a lane, or a queue (""), with its rate, as the forms that change it need it."""
    found = (each for each in rates if (each.queue, each.lane) == (queue, lane))
    return {
        "queue": queue,
        "lane": lane,
        "view": next(found, RateView(queue=queue, lane=lane, rate=None)),
        "name": f"lane {lane}" if lane else f"queue {queue}",
        "shell": shlex.quote(queue) + (f" --lane {shlex.quote(lane)}" if lane else ""),
    }


def _urgency(rate: RateView) -> tuple[bool, int, str, str]:
    """What is held comes first, then that for which the most jobs wait."""
    return (rate.held_until is None, -(rate.waiting or 0), rate.queue, rate.lane)


def _blocked(lane: LaneView, long: set[str]) -> bool:
    """Return whether others wait because the holders have had their places for long."""
    seen = lane.holders[:MOST_HOLDERS]
    full = lane.used >= lane.width and len(seen) == len(lane.holders)
    return bool(lane.waiting and full and seen) and all(each in long for each in seen)
