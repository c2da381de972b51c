"""Schedules whose time has passed without a job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from headrace.engine.base import Records
from headrace.errors import HeadraceError
from headrace.model.views import Finding, FindingTarget, Record
from headrace.monitor.words import clock_time, plural, span

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "schedules"
SCHEDULE, STATE = "schedule", "schedule-state"
MOST_SCHEDULES = 1_000
# Dispatchers make jobs within seconds; and skipped times are told of for so long.
LATE = timedelta(minutes=2)
TOLD_FOR = timedelta(hours=1)


class MissedSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that is due since a time, or that has passed over some times."""

    name: str
    due: datetime | None = None
    skipped: int = 0
    last_skipped: datetime | None = None


async def missed_schedules(engine: Records, now: datetime) -> Sequence[MissedSchedule]:
    """Return the schedules that missed something, by name."""
    schedules = await engine.record_list(SCHEDULE, limit=MOST_SCHEDULES)
    if not schedules:
        return ()
    states = await engine.record_list(STATE, limit=2 * MOST_SCHEDULES)
    # A thousand of them take a while to compute.
    return await asyncio.to_thread(_missed, schedules, states, now)


def _missed(
    schedules: Sequence[Record], states: Sequence[Record], now: datetime
) -> list[MissedSchedule]:
    try:
        from headrace.model.schedules.schedule import KeptSchedule, ScheduleState  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        return []
    known = {record.key: record.body for record in states}
    found = []
    for record in schedules:
        try:
            kept = msgspec.json.decode(record.body, type=KeptSchedule)
            state = msgspec.json.decode(known.get(record.key, b"{}"), type=ScheduleState)
            due = next(kept.schedule.times(state.base(kept.since)), None)
        except (msgspec.DecodeError, HeadraceError):
            continue  # told of where schedules are listed
        if not kept.schedule.enabled:
            continue
        late = due if due is not None and now - due > LATE else None
        skips = [
            skip for skip in state.skips if skip.reason == "missed" and now - skip.last < TOLD_FOR
        ]
        if late is not None or skips:
            found.append(
                MissedSchedule(
                    name=record.key,
                    due=late,
                    skipped=sum(skip.count for skip in skips),
                    last_skipped=max((skip.last for skip in skips), default=None),
                )
            )
    return found


def findings(facts: Facts) -> Iterator[Finding]:
    """Return the schedules that missed something."""
    dispatching = any(each["type"] == "cron" and not each["silent"] for each in facts.dispatchers)
    for each in facts.schedules:
        if each.due is not None:
            late = span((facts.now - each.due).total_seconds())
            why = "" if dispatching else ", and no cron dispatcher runs"
            told = f"was due at {clock_time(each.due, facts.now)} and is {late} late{why}"
            remedy = (
                f"Read the log of the cron dispatcher; see: headrace schedules show {each.name}"
                if dispatching
                else "Start one: headrace dispatcher cron --app …"
            )
            yield _finding(each, "error", told, remedy, each.due)
        elif each.last_skipped is not None:
            last = clock_time(each.last_skipped, facts.now)
            told = f"missed {plural(each.skipped, 'time')}, the last at {last}"
            remedy = f"Make up for it: headrace schedules trigger {each.name}"
            yield _finding(each, "warning", told, remedy, each.last_skipped, action="trigger")


def _finding(
    each: MissedSchedule,
    level: object,
    told: str,
    remedy: str,
    since: datetime,
    *,
    action: str | None = None,
) -> Finding:
    return Finding(
        level,  # type: ignore[arg-type]
        SUBJECT,
        f"schedule {each.name!r} {told}",
        remedy,
        kind="schedule.missed",
        name=each.name,
        since=since,
        action=action,
        target=FindingTarget("schedules", {"name": each.name}),
    )
