"""Schedules as people see them: in words, with what comes next and what came of the last ones."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import msgspec

from headrace.api_types.responses import (
    ScheduleRun,
    ScheduleTime,
    ScheduleTimes,
    ScheduleView,
    SkippedTimes,
)
from headrace.dispatchers.cron.schedules import Schedules
from headrace.errors import InvalidSetting
from headrace.model.schedules.schedule import RUNS_KEPT, KeptSchedule, Schedule, ScheduleState
from headrace.model.status import Status

NEXT = 5
FIELDS = ("name", "task", "expression", "tz", "allow_overlap", "missed", "enabled")
# Jobs of each schedule in a list, and of one that is shown alone.
RUNS = 5
MORE_RUNS = RUNS_KEPT


async def schedule_views(
    schedules: Schedules,
    now: datetime,
    *,
    after: str = "",
    limit: int | None = None,
    runs: int = RUNS,
) -> list[ScheduleView]:
    """Return schedules, by name: those after one, and at most so many. Those that are declared in
    code, and that no dispatcher has stored yet, are among them.
    """
    kept = await schedules.records.all(after, limit)
    last = kept[-1].schedule.name if kept and limit is not None else None
    states = await schedules.records.states(after, last) if kept else {}
    pairs = [(each, _readable(states.get(each.schedule.name))) for each in kept]
    statuses = await schedules.statuses([_cut(state, runs) for _, state in pairs])
    views = [
        _view(schedules, each, state, statuses=statuses, now=now, runs=runs)
        for each, state in pairs
    ]
    stored = {each.name for each in views}
    for name in sorted(schedules.declared.keys() - stored):
        # Of a page that is full, those behind it may be stored; they are on the next one.
        behind = limit is not None and len(kept) == limit and last is not None and name > last
        if name > after and not behind:
            views.append(_unstored(schedules, name, now))
    return sorted(views, key=lambda view: view.name)[:limit]


async def schedule_view(schedules: Schedules, name: str, now: datetime) -> ScheduleView:
    """Return one schedule, or raise an error that names the nearest ones."""
    if name in schedules.declared and await schedules.records.find(name) is None:
        return _unstored(schedules, name, now)
    kept = await schedules.get(name)
    state, _ = await schedules.records.state(name)
    statuses = await schedules.statuses([_cut(state, MORE_RUNS)])
    return _view(schedules, kept, state, statuses=statuses, now=now, runs=MORE_RUNS)


def _unstored(schedules: Schedules, name: str, now: datetime) -> ScheduleView:
    """Return a schedule that is declared, and does not fire before a dispatcher stores it."""
    kept = schedules.as_declared(name, now)
    view = _view(schedules, kept, ScheduleState(), statuses={}, now=now, runs=0)
    view.stored = False
    return view


def schedule_times(schedule: Schedule, now: datetime, count: int) -> ScheduleTimes:
    """Return the next times of a schedule, stored or not."""
    return ScheduleTimes(
        expression=schedule.expression,
        words=schedule.cron.words,
        tz=schedule.tz,
        next=_next_times(schedule, now, count),
    )


def _next_times(schedule: Schedule, after: datetime, count: int) -> list[ScheduleTime]:
    """Return its times after a moment, in its own zone and in UTC."""
    return [
        ScheduleTime(local=time.astimezone(schedule.zone), utc=time)
        for time in itertools.islice(schedule.times(after), count)
    ]


def _view(
    schedules: Schedules,
    kept: KeptSchedule,
    state: ScheduleState,
    *,
    statuses: dict[str, Status],
    now: datetime,
    runs: int,
) -> ScheduleView:
    schedule = kept.schedule
    due = next(schedule.times(state.base(kept.since)), None) if schedule.enabled else None
    return ScheduleView(
        **{name: getattr(schedule, name) for name in FIELDS},
        params=schedules.records.params.shown(schedule),
        words=schedule.cron.words,
        origin=kept.origin,
        since=kept.since.astimezone(UTC),
        # More than a moment late: no dispatcher runs, or none that knows the task.
        late_seconds=0.0 if due is None else max(0.0, (now - due).total_seconds()),
        next=_next_times(schedule, now, NEXT) if schedule.enabled else [],
        last_runs=[
            ScheduleRun(
                job_id=run.job_id,
                time=run.time,
                made_at=run.made_at,
                triggered=run.time is None,
                status=str(statuses.get(run.job_id, "pruned")),
            )
            for run in state.runs[:runs]
        ],
        skipped=[SkippedTimes(**msgspec.structs.asdict(skip)) for skip in state.skips],
    )


def _readable(state: ScheduleState | InvalidSetting | None) -> ScheduleState:
    """One that cannot be read hides nothing but what has become of its own schedule."""
    return state if isinstance(state, ScheduleState) else ScheduleState()


def _cut(state: ScheduleState, runs: int) -> ScheduleState:
    return ScheduleState(runs=state.runs[:runs])
