"""Schedules: what people ask for, what has become of it, and what is due. No I/O.

For each (schedule, time) one job is made. The state says how far a schedule has come (`cursor`); it
is only ever changed under the version that was read, and in the same step as the jobs are made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.names import check_name
from headrace.model.schedules.cron import Cron, find_zone, parse_cron

Missed = Literal["skip", "latest", "all"]
Reason = Literal["missed", "overlap"]
MISSED: tuple[Missed, ...] = ("skip", "latest", "all")

RUNS_KEPT = 20
SKIPS_KEPT = 10
UNFINISHED_KEPT = 500
# Skipped times are counted up to here; more are "at least so many".
COUNTED = 1_000


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a task runs by the clock, and with which arguments.

    `missed` says what happens to times at which no dispatcher ran: none of them (`skip`), the
    last one (`latest`), or every one (`all`). With `allow_overlap` false nothing is made while an
    earlier job of the schedule is unfinished.
    """

    name: str
    expression: str
    task: str
    tz: str = "UTC"
    params: dict[str, Any] = {}
    allow_overlap: bool = True
    enabled: bool = True
    missed: Missed = "latest"

    def checked(self) -> Schedule:
        """The same, if its parts can be used."""
        check_name("schedule", self.name)
        check_name("task", self.task)
        parse_cron(self.expression)
        find_zone(self.tz)
        if self.missed not in MISSED:
            raise InvalidSetting(f'missed must be "skip", "latest" or "all", got {self.missed!r}')
        for field in ("allow_overlap", "enabled"):
            if not isinstance(getattr(self, field), bool):
                raise InvalidSetting(f"{field} must be true or false, got {getattr(self, field)!r}")
        if not isinstance(self.params, dict):
            raise InvalidSetting(f"params must be names with values, got {self.params!r}")
        return self

    @property
    def cron(self) -> Cron:
        """The expression, parsed."""
        return parse_cron(self.expression)

    @property
    def zone(self) -> ZoneInfo:
        """The time zone."""
        return find_zone(self.tz)

    def times(self, after: datetime) -> Iterator[datetime]:
        """Its times after a moment, in UTC."""
        return self.cron.times(after, self.zone)

    def fires_like(self, other: Schedule) -> bool:
        """Whether both make the same jobs at the same times, if enabled."""
        return (self.expression, self.tz, self.task) == (other.expression, other.tz, other.task)


class KeptSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the engine keeps it.

    Nothing is made for times up to `since`: it was added, enabled or given other times then.
    `origin` says where it was declared, `declared` the definition there, so that a restart does not
    undo what people have changed since. `owner` is the name of the service that declares it: only
    this one changes it, and removes it when it is not declared any more.
    """

    schedule: Schedule
    since: datetime
    origin: str = "code"
    declared: Schedule | None = None
    owner: str | None = None

    def changed(self, schedule: Schedule, now: datetime) -> KeptSchedule:
        """With another definition from now on. Other times, or a new start, forget the past."""
        before = self.schedule
        goes_on = before.fires_like(schedule) and (before.enabled or not schedule.enabled)
        since = self.since if goes_on else max(now, self.since)
        return msgspec.structs.replace(self, schedule=schedule, since=since)


class Skip(msgspec.Struct, frozen=True):
    """Times for which nothing was made, and why."""

    reason: Reason
    first: datetime
    last: datetime
    count: int = 1


class FiredRun(msgspec.Struct, frozen=True):
    """A job that was made: for a time, or at once on request (`time` is then None)."""

    job_id: str
    time: datetime | None
    made_at: datetime


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a schedule has come. It outlives the schedule by a day, in case it comes back."""

    cursor: datetime | None = None
    runs: list[FiredRun] = []
    skips: list[Skip] = []
    # Jobs that were unfinished when they fell out of `runs`, of a schedule that allows no overlap.
    unfinished: list[str] = []

    def base(self, since: datetime) -> datetime:
        """The moment after which times are still to be handled."""
        return since if self.cursor is None else max(self.cursor, since)

    def passed(self, cursor: datetime, skips: list[Skip], runs: list[FiredRun]) -> ScheduleState:
        """After all times up to `cursor` were handled, and jobs were made for some of them."""
        return ScheduleState(
            cursor=cursor if self.cursor is None else max(cursor, self.cursor),
            runs=[*reversed(runs), *self.runs][:RUNS_KEPT],
            skips=[*reversed(skips), *self.skips][:SKIPS_KEPT],
            unfinished=self.unfinished,
        )

    def with_unfinished(self, ids: Iterable[str]) -> ScheduleState:
        """Return the state that remembers these unfinished jobs, however many follow."""
        kept = {run.job_id for run in self.runs}
        left = [job_id for job_id in ids if job_id not in kept]
        return msgspec.structs.replace(self, unfinished=left[:UNFINISHED_KEPT])

    def triggered(self, run: FiredRun) -> ScheduleState:
        """Return the state after a job was requested at once."""
        return msgspec.structs.replace(self, runs=[run, *self.runs][:RUNS_KEPT])


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about the times that are due: jobs to make, times to pass over."""

    make: list[datetime]
    skips: list[Skip]
    cursor: datetime


def plan(
    schedule: Schedule,
    *,
    base: datetime,
    now: datetime,
    missed_after: timedelta,
    limit: int,
) -> Plan | None:
    """Decide about the times after `base` that are due; None if there are none.

    A time is missed when it is `missed_after` late or later. At most `limit` times are made.
    """
    first = next(schedule.times(base), None)
    if first is None or first > now:
        return None
    if schedule.missed == "all":
        return _make(schedule, base, now, [], limit)
    late = now - missed_after
    last = schedule.cron.latest(base, late, schedule.zone) if first <= late else None
    if last is None:
        return _make(schedule, base, now, [], limit)
    on_time = next(schedule.times(last), None)
    if schedule.missed == "skip" or (on_time is not None and on_time <= now):
        passed = _missed(schedule, base, last)
        if on_time is None or on_time > now:
            return Plan(make=[], skips=passed, cursor=last)
        return _make(schedule, last, now, passed, limit)
    before = schedule.cron.latest(base, last - timedelta(seconds=1), schedule.zone)
    passed = [] if before is None else _missed(schedule, base, before)
    return Plan(make=[last], skips=passed, cursor=last)


def _make(
    schedule: Schedule, after: datetime, now: datetime, skips: list[Skip], limit: int
) -> Plan:
    due = itertools.takewhile(lambda time: time <= now, schedule.times(after))
    times = list(itertools.islice(due, limit))
    return Plan(make=times, skips=skips, cursor=times[-1])


def _missed(schedule: Schedule, after: datetime, last: datetime) -> list[Skip]:
    times = itertools.takewhile(lambda time: time <= last, schedule.times(after))
    counted = list(itertools.islice(times, COUNTED + 1))
    return [Skip("missed", counted[0], last, len(counted))]


def job_key(name: str, time: datetime) -> str:
    """The key of the job for one time of a schedule: a second one cannot be made."""
    return f"schedule:{name}:{time.isoformat()}"
