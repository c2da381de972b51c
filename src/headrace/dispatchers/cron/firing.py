"""One schedule, fired: each of its times makes one job, whoever dies when.

How far the schedule has come is read, what is due is planned, and the jobs are stored in one step
with how far it has come then, under the version that was read. So of several dispatchers one gets
through, and what it did is done: nobody has to finish it, and nobody can do it again.
"""

from __future__ import annotations

import itertools
import logging
from datetime import datetime, timedelta

import msgspec

from headrace.dispatchers.cron.config import CronSettings
from headrace.dispatchers.cron.schedules import Schedules
from headrace.errors import RecordConflict
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.schedules.schedule import (
    FiredRun,
    KeptSchedule,
    Plan,
    Schedule,
    ScheduleState,
    Skip,
    job_key,
    plan,
)
from headrace.model.times import moment_of
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.cron")

# Jobs that are inserted together.
BATCH = 100
# So often others may be faster, before it is left to them for a while.
TRIES = 20
A_WHILE = timedelta(seconds=3)


class Firing:
    """Makes the jobs of schedules for one dispatcher."""

    def __init__(self, host: AppLike, schedules: Schedules, *, settings: CronSettings) -> None:
        self._host = host
        self._schedules = schedules
        self._records = schedules.records
        self._settings = settings
        self.made = 0
        self.lag = 0.0

    async def fire(self, name: str) -> datetime | None:
        """Make what is due. Answers when to look at the schedule again; None: when it changes."""
        left = self._settings.most_at_once
        conflicts = 0
        while conflicts < TRIES:
            kept = await self._records.find(name)
            if kept is None or not kept.schedule.enabled:
                return None
            state, version = await self._records.state(name)
            here = now = self._host.clock.utcnow()
            if not kept.schedule.allow_overlap:
                # Whether an earlier job is unfinished when a time has come is known when it has
                # come for the engine: a clock that is ahead would skip it too early.
                now = min(here, moment_of(await self._host.engine.now()))
            step = self._plan(kept, state, now, min(left, BATCH))
            if step is None:
                time = next(kept.schedule.times(state.base(kept.since)), None)
                return time if time is None or time > here else here + (time - now)
            if left <= 0:
                log.warning(
                    "Schedule %s: %d jobs made at once for missed times, more are to come",
                    *(name, self._settings.most_at_once),
                )
                return now
            try:
                left -= await self._take(kept.schedule, state, version, step, now)
            except RecordConflict:
                conflicts += 1  # somebody else was faster: look at what is left to do
        return self._host.clock.utcnow() + A_WHILE

    def _plan(
        self, kept: KeptSchedule, state: ScheduleState, now: datetime, limit: int
    ) -> Plan | None:
        return plan(
            kept.schedule,
            base=state.base(kept.since),
            now=now,
            missed_after=timedelta(seconds=self._settings.missed_after_seconds),
            limit=max(limit, 1),
        )

    async def _take(
        self, schedule: Schedule, state: ScheduleState, version: int, step: Plan, now: datetime
    ) -> int:
        """Do what was planned. Returns how many times were taken."""
        unfinished = state.unfinished
        if step.make and not schedule.allow_overlap:
            unfinished = [job.id for job in await self._schedules.unfinished(state)]
            if unfinished:
                step = _overlapping(schedule, step, now)
            elif len(step.make) > 1:
                # One at a time: whether the next is made depends on what becomes of this one.
                step = Plan(make=step.make[:1], skips=step.skips, cursor=step.make[0])
        jobs = [self._job(schedule, time) for time in step.make]
        runs = [FiredRun(job.id, time, now) for job, time in zip(jobs, step.make, strict=True)]
        after = state.passed(step.cursor, step.skips, runs)
        if not schedule.allow_overlap:
            after = after.with_unfinished(unfinished)
        change = self._records.state_change(schedule.name, after, version)
        if self._host.tracing is None:
            answers = await self._host.engine.insert(jobs, record=change)
        else:
            with self._host.tracing.enqueuing_each(jobs) as traced:
                answers = await self._host.engine.insert(traced, record=change)
        self.made += sum(answer.created for answer in answers)
        if jobs:
            self.lag = max(0.0, (now - step.make[-1]).total_seconds())
        self._tell(schedule.name, step.skips)
        return len(jobs)

    def _job(self, schedule: Schedule, time: datetime) -> NewJob:
        return self._schedules.job(
            schedule,
            job_id=new_id(),
            key=job_key(schedule.name, time),
            # Not before its time, also if this machine's clock is ahead of the engine's.
            run_at=time,
            meta={"scheduled_for": time},
        )

    def _tell(self, name: str, skips: list[Skip]) -> None:
        for skip in skips:
            log.warning(
                "Schedule %s: nothing made for %d times from %s to %s: %s",
                *(name, skip.count, skip.first.isoformat(), skip.last.isoformat(), skip.reason),
            )


def _overlapping(schedule: Schedule, step: Plan, now: datetime) -> Plan:
    """Everything that is due falls into the time of an unfinished job."""
    last = schedule.cron.latest(step.make[-1], now, schedule.zone) or step.make[-1]
    times = itertools.takewhile(lambda time: time <= last, schedule.times(step.make[0]))
    count = 1 + sum(1 for _ in itertools.islice(times, 1_000))
    skip = Skip("overlap", step.make[0], last, count)
    return msgspec.structs.replace(step, make=[], skips=[*step.skips, skip], cursor=last)
