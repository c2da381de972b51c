"""Rates as people see them: with how many jobs wait, and who holds a key, and why.

Engines keep rates and holds. Who asked for a hold is a record beside them, with the end that the
engine gave to it: if that is another one by now, the hold is no longer this one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from headrace.engine.base import Records, Viewing
from headrace.engine.bounded_reads import records_of
from headrace.model.job import JobFilter
from headrace.model.limits.rate import RateView
from headrace.model.status import Status
from headrace.model.views import LaneView, QueueView, Record

HOLD = "hold"
# Of the lanes with the most jobs so many are counted, and so many running jobs are looked through.
MOST_LANES = 1_000
MOST_RUNNING = 5_000
PAGE = 500
# Engines keep the end of a hold to the microsecond, give or take what a float can hold.
SAME_SECONDS = 0.001

Place = tuple[str, str]
"""A queue and a lane in it; the lane "" is the queue itself."""


class RatesReader(Viewing, Records, Protocol):
    """What is read of an engine."""


class Hold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who holds a key until when, and why."""

    until: datetime
    by: str | None = None
    reason: str | None = None


def hold_key(queue: str, lane: str) -> str:
    """The key of the record of a hold. No queue has a slash in its name."""
    return f"{queue}/{lane}"


def read_hold(record: Record) -> Hold | None:
    """What a record says; None if it is of a version that is not known here."""
    try:
        return msgspec.json.decode(record.body, type=Hold)
    except msgspec.DecodeError:
        return None


async def with_holds(engine: Records, rates: Sequence[RateView]) -> list[RateView]:
    """Fill in who holds these keys, and why, as far as it is known."""
    if all(each.held_until is None for each in rates):
        return list(rates)
    if len(rates) == 1:
        found = await engine.record_get(HOLD, hold_key(rates[0].queue, rates[0].lane))
        records = [] if found is None else [found]
    else:
        records = await records_of(engine, HOLD)
    holds = {record.key: read_hold(record) for record in records}
    return [_described(each, holds.get(hold_key(each.queue, each.lane))) for each in rates]


def _described(rate: RateView, hold: Hold | None) -> RateView:
    if hold is None or rate.held_until is None:
        return rate
    if abs((rate.held_until - hold.until).total_seconds()) > SAME_SECONDS:
        return rate  # held by somebody else since, or by a job
    return msgspec.structs.replace(rate, held_by=hold.by, held_reason=hold.reason)


async def with_waiting(
    engine: Viewing, rates: Sequence[RateView], queues: Sequence[QueueView] | None = None
) -> list[RateView]:
    """Fill in how many jobs of these keys have not started although they are due: they wait for the
    rate, for a place in their lane, or for a worker. None where there are too many lanes to count.
    """
    if not rates:
        return []
    names = {each.queue for each in rates}
    queue = names.pop() if len(names) == 1 else None
    lane = rates[0].lane if len(rates) == 1 else None
    lanes: Sequence[LaneView] = []
    running: Mapping[Place, int] = {}
    if any(each.lane for each in rates):
        lanes, running = await asyncio.gather(
            engine.lanes(queue=queue, lane=lane, limit=MOST_LANES), _running(engine, queue)
        )
    if queues is None:
        queues = await engine.queues() if any(not each.lane for each in rates) else []
    waiting = {(each.name, ""): each.ready + each.waiting for each in queues}
    for each in lanes:
        place = (each.queue, each.lane)
        waiting[place] = each.waiting + max(each.used - running.get(place, 0), 0)
    rest = None if len(lanes) == MOST_LANES else 0
    return [
        msgspec.structs.replace(
            each, waiting=waiting.get((each.queue, each.lane), rest if each.lane else 0)
        )
        for each in rates
    ]


async def _running(engine: Viewing, queue: str | None) -> Counter[Place]:
    """How many jobs of each lane run."""
    wanted = JobFilter(statuses=(Status.RUNNING,), queues=() if queue is None else (queue,))
    counted: Counter[Place] = Counter()
    cursor = None
    for _ in range(0, MOST_RUNNING, PAGE):
        page = await engine.list_jobs(wanted, cursor=cursor, limit=PAGE, brief=True)
        counted.update((job.queue, job.lane) for job in page.jobs if job.lane is not None)
        cursor = page.cursor
        if cursor is None:
            break
    return counted
