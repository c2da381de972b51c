"""Schedules as people see them: in words, with what comes next and what came of the last ones."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from headrace.dispatchers.cron.schedules import Schedules
from headrace.model.schedule import KeptSchedule, Schedule, ScheduleState
from headrace.model.status import Status

NEXT = 5
RUNS = 5


async def views(schedules: Schedules, now: datetime, *, runs: int = RUNS) -> list[dict[str, Any]]:
    """Every schedule, by name."""
    kept = await schedules.records.all()
    states = await schedules.records.states()
    pairs = [(each, states.get(each.schedule.name, ScheduleState())) for each in kept]
    statuses = await schedules.statuses([_cut(state, runs) for _, state in pairs])
    return [_view(each, state, statuses, now, runs) for each, state in pairs]


async def view(
    schedules: Schedules, name: str, now: datetime, *, runs: int = RUNS
) -> dict[str, Any]:
    """One schedule, or an error that names the nearest ones."""
    kept = await schedules.get(name)
    state, _ = await schedules.records.state(name)
    statuses = await schedules.statuses([_cut(state, runs)])
    return _view(kept, state, statuses, now, runs)


def next_times(schedule: Schedule, after: datetime, count: int = NEXT) -> list[dict[str, datetime]]:
    """Its times after a moment, in its own zone and in UTC."""
    return [
        {"local": time.astimezone(schedule.zone), "utc": time}
        for time in itertools.islice(schedule.times(after), count)
    ]


def _view(
    kept: KeptSchedule,
    state: ScheduleState,
    statuses: dict[str, Status],
    now: datetime,
    runs: int,
) -> dict[str, Any]:
    schedule = kept.schedule
    due = next(schedule.times(state.base(kept.since)), None) if schedule.enabled else None
    return {
        "name": schedule.name,
        "task": schedule.task,
        "expression": schedule.expression,
        "words": schedule.cron.words,
        "tz": schedule.tz,
        "params": schedule.params,
        "allow_overlap": schedule.allow_overlap,
        "missed": schedule.missed,
        "enabled": schedule.enabled,
        "origin": kept.origin,
        "since": kept.since.astimezone(UTC),
        # More than a moment late: no dispatcher runs, or none that knows the task.
        "late_seconds": max(0.0, (now - due).total_seconds()) if due is not None else 0.0,
        "next": next_times(schedule, now) if schedule.enabled else [],
        "last_runs": [
            {
                "job_id": run.job_id,
                "time": run.time,
                "made_at": run.made_at,
                "triggered": run.time is None,
                "status": _status(statuses.get(run.job_id)),
            }
            for run in state.runs[:runs]
        ],
        "skipped": state.skips,
    }


def _status(status: Status | None) -> str:
    return "pruned" if status is None else status.value


def _cut(state: ScheduleState, runs: int) -> ScheduleState:
    return ScheduleState(runs=state.runs[:runs])
