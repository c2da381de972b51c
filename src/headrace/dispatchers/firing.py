"""One schedule, fired: each of its times makes one job, whoever dies when.

    1. write the intent: these times, these job ids        only under the version that was read
    2. insert the jobs, each under the key of its time     again is harmless: the key exists
    3. write the cursor and clear the intent               only under the version of step 1

One dispatcher at a time gets through step 1. If it dies, another finds the intent and does 2 and 3
with the same values. The key alone would not do: it goes when history is pruned. So an intent that
was left for longer than history is kept is not repeated unless it can be proved that its jobs were
never made: a job that finished before the intent is still there, and pruning takes the oldest
first. Without that proof the times are passed over as `uncertain`, and that is logged.
"""

from __future__ import annotations

import itertools
import logging
from datetime import datetime, timedelta

import msgspec

from headrace.dispatchers.host import Host
from headrace.dispatchers.schedules import Schedules
from headrace.dispatchers.settings import CronSettings
from headrace.errors import RecordConflict
from headrace.model.ids import new_id
from headrace.model.job import JobFilter, NewJob
from headrace.model.schedule import (
    Intent,
    KeptSchedule,
    Plan,
    Planned,
    Schedule,
    ScheduleState,
    Skip,
    job_key,
    plan,
)
from headrace.model.status import FINAL

log = logging.getLogger("headrace.cron")

# Jobs of one intent, which are inserted together.
BATCH = 100
# Whoever wrote an intent that we have seen for no longer is probably at work on it,
PATIENCE = timedelta(seconds=3)
# so within this time the one that wrote it may insert without looking back.
FRESH = timedelta(seconds=2)
# Clocks of different machines are closer than this; an intent that is older was left.
SKEW = timedelta(seconds=60)
TRIES = 20
WITNESSES = 100


class Firing:
    """Makes the jobs of schedules for one dispatcher, which is called `by`."""

    def __init__(
        self, host: Host, schedules: Schedules, *, settings: CronSettings, by: str
    ) -> None:
        self._host = host
        self._schedules = schedules
        self._records = schedules.records
        self._settings = settings
        self._by = by
        self._seen: dict[str, tuple[int, datetime]] = {}
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
            now = self._host.clock.utcnow()
            try:
                if state.intent is not None:
                    again = self._patience(name, state.intent, version, now)
                    if again is not None:
                        return again
                    await self._finish(kept, state, state.intent, version)
                    continue
                self._seen.pop(name, None)
                step = self._plan(kept, state, now, min(left, BATCH))
                if step is None:
                    return next(kept.schedule.times(state.base(kept.since)), None)
                if left <= 0:
                    log.warning(
                        "Schedule %s: %d jobs made at once for missed times, more are to come",
                        *(name, self._settings.most_at_once),
                    )
                    return now
                left -= await self._take(kept.schedule, state, version, step, now)
            except RecordConflict:
                conflicts += 1  # somebody else has decided: look at what
        return self._host.clock.utcnow() + PATIENCE

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
        """Do what was planned, all three steps. Answers how many jobs were made."""
        if step.make and not schedule.allow_overlap:
            if await self._schedules.unfinished(state):
                step = _overlapping(schedule, step, now)
            elif len(step.make) > 1:
                # One at a time: whether the next is made depends on what becomes of this one.
                step = Plan(make=step.make[:1], skips=step.skips, cursor=step.make[0])
        self._tell(schedule.name, step.skips)
        if not step.make:
            await self._records.put_state(
                schedule.name, state.passed(step.cursor, step.skips), version
            )
            return 0
        intent = Intent(
            jobs=[Planned(time, new_id()) for time in step.make],
            task=schedule.task,
            at=now,
            by=self._by,
            cursor=step.cursor,
            skips=step.skips,
        )
        jobs = self._jobs(schedule, intent)  # what cannot be made is found out before step 1
        intended = state.intending(intent)
        version = await self._records.put_state(schedule.name, intended, version)
        if self._host.clock.utcnow() - now > FRESH:
            raise RecordConflict(f'schedule "{schedule.name}": too slow, somebody may have helped')
        await self._insert(jobs)
        self.lag = max(0.0, (now - step.make[-1]).total_seconds())
        await self._records.put_state(schedule.name, intended.made(intent, now), version)
        return len(jobs)

    async def _finish(
        self, kept: KeptSchedule, state: ScheduleState, intent: Intent, version: int
    ) -> None:
        """Do steps 2 and 3 for somebody who did not."""
        name = kept.schedule.name
        if intent.task != kept.schedule.task or intent.cursor <= kept.since:
            # It has become another schedule since: its past is not made up for.
            await self._records.put_state(name, state.dropped(intent, None), version)
            return
        found = await self._host.engine.get([job.job_id for job in intent.jobs])
        if not found and not await self._never_made(intent):
            log.error(
                "Schedule %s: a dispatcher ended while it made the jobs for %s, and history from "
                "then is gone: they are not made, in case they were; "
                "to make one now: headrace schedules trigger %s",
                *(name, ", ".join(job.time.isoformat() for job in intent.jobs), name),
            )
            await self._records.put_state(name, state.dropped(intent, "uncertain"), version)
            return
        if not found:
            await self._insert(self._jobs(kept.schedule, intent))
        log.info("Schedule %s: finished what dispatcher %s had begun", name, intent.by)
        await self._records.put_state(name, state.made(intent, intent.at), version)

    async def _never_made(self, intent: Intent) -> bool:
        """Whether jobs that are not there cannot have been made and pruned."""
        settings = self._host.settings
        age = (self._host.clock.utcnow() - intent.at).total_seconds()
        if age < settings.history_seconds and settings.history_count is None:
            return True
        page = await self._host.engine.list_jobs(
            JobFilter(statuses=tuple(FINAL), created_before=intent.at), limit=WITNESSES
        )
        return any(
            job.completed_at is not None and job.completed_at < intent.at for job in page.jobs
        )

    def _patience(self, name: str, intent: Intent, version: int, now: datetime) -> datetime | None:
        """Until when to leave an intent to the one that wrote it; None: not any longer."""
        if intent.by == self._by or now - intent.at >= SKEW:
            return None
        seen, since = self._seen.get(name, (0, now))
        if seen != version:
            since = now
        self._seen[name] = (version, since)
        return None if now - since >= PATIENCE else since + PATIENCE

    def _jobs(self, schedule: Schedule, intent: Intent) -> list[NewJob]:
        return [
            self._schedules.job(
                schedule,
                job_id=job.job_id,
                key=job_key(schedule.name, job.time),
                # Not before its time, also if this machine's clock is ahead of the engine's.
                run_at=job.time,
                meta={"scheduled_for": job.time},
            )
            for job in intent.jobs
        ]

    async def _insert(self, jobs: list[NewJob]) -> None:
        answers = await self._host.engine.insert(jobs)
        self.made += sum(answer.created for answer in answers)

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
