"""Schedules: declared in code, kept in the engine, changed by people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec

from headrace.dispatchers.cron.store import ScheduleRecords
from headrace.enqueue import stored
from headrace.errors import HeadraceError, InvalidSetting, JobConflict, RecordConflict
from headrace.model.cron import parse_cron
from headrace.model.ids import new_id
from headrace.model.job import Job, NewJob, Source
from headrace.model.schedule import FiredRun, KeptSchedule, Missed, Schedule, ScheduleState
from headrace.model.status import Status
from headrace.task import Task
from headrace.task.app_like import AppLike
from headrace.task.codec import encode

log = logging.getLogger("headrace.cron")

LEAST_INTERVAL = 60.0
# Of a setting of the dispatcher.
LARGEST = 31 * 86_400
TRIES = 20

T = TypeVar("T", bound=Task[..., Any])


class CronSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a cron dispatcher goes about its work.

    It sleeps until the next time is due, but reads the schedules again every
    `poll_interval_seconds` and never sleeps longer than `max_sleep_seconds`. A time counts as
    missed when it is `missed_after_seconds` late. For missed times of one schedule at most
    `most_at_once` jobs are made before others have their turn.
    """

    poll_interval_seconds: float = 60.0
    max_sleep_seconds: float = 300.0
    min_cron_interval_seconds: float = LEAST_INTERVAL
    missed_after_seconds: float = 60.0
    most_at_once: int = 1_000

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InvalidSetting(f"dispatcher.{field} must be a number, got {value!r}")
            if not value >= 1:
                raise InvalidSetting(f"dispatcher.{field} must be at least 1, got {value!r}")
            if value > LARGEST:
                raise InvalidSetting(f"dispatcher.{field} must be at most {LARGEST}, got {value!r}")


class ScheduleOptions(TypedDict, total=False):
    """What may be said of a schedule beside its task and expression."""

    tz: str
    name: str | None
    params: dict[str, Any] | None
    allow_overlap: bool
    missed: Missed
    enabled: bool


class Schedules:
    """The schedules of an App. Those in `on_change` are called after each change made here."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self.records = ScheduleRecords(host)
        self.least_interval = LEAST_INTERVAL
        self.declared: dict[str, Schedule] = {}
        self.on_change: list[Callable[[], None]] = []

    # -- in code -------------------------------------------------------------------------------

    def declaring(self, expression: str, **options: Unpack[ScheduleOptions]) -> Callable[[T], T]:
        """A decorator for a task: `@app.schedule(…)` stands above `@app.task`."""

        def declare(task: T) -> T:
            self.declare(task, expression, **options)
            return task

        return declare

    def declare(
        self, task: Task[..., Any] | str, expression: str, **options: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Say in code when a task runs. A dispatcher stores it when it starts."""
        if not isinstance(task, (Task, str)):
            raise InvalidSetting(
                f"a schedule is for a task, but {getattr(task, '__qualname__', task)!r} is a "
                f"{type(task).__name__}; put @app.schedule(…) above @app.task"
            )
        found = self._host.find_task(task) if isinstance(task, str) else task
        given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        given = {"name": found.name, **given, "expression": expression, "task": found.name}
        schedule = self.checked(Schedule(**given))
        if schedule.name in self.declared:
            raise InvalidSetting(
                f'two schedules are called "{schedule.name}"; give one of them a name of its own: '
                '@app.schedule(…, name="other")'
            )
        self.declared[schedule.name] = schedule
        return schedule

    async def sync(
        self, schedules: Sequence[Schedule], origin: str, *, forget: bool = True
    ) -> None:
        """Store what was declared in one place, and forget what it does not declare any more.

        What people have changed by hand stays, unless the declaration has changed as well.
        """
        declared = {each.name: self.checked(each, self.least_interval) for each in schedules}
        await self._host.open()
        for schedule in declared.values():
            await self._change(schedule.name, _declaration(schedule, origin))
        for kept in await self.records.all() if forget else ():
            if kept.origin == origin and kept.schedule.name not in declared:
                log.info("Schedule %s is no longer declared: removed", kept.schedule.name)
                await self.records.delete(kept.schedule.name)
        self._tell()

    # -- by hand -------------------------------------------------------------------------------

    async def add(
        self, schedule: Schedule, *, origin: str = "code", replace: bool = False
    ) -> KeptSchedule:
        """Store a schedule. Its first time is the next one from now."""
        checked = self.checked(schedule, self.least_interval)
        await self._host.open()

        def change(before: KeptSchedule | None, now: Any) -> KeptSchedule:
            if before is None:
                return KeptSchedule(schedule=checked, since=now, origin=origin)
            if not replace:
                raise InvalidSetting(
                    f'a schedule "{schedule.name}" exists already; choose another name, or '
                    "replace it (--replace)"
                )
            return before.changed(checked, now)

        kept = await self._change(schedule.name, change)
        self._tell()
        return kept

    async def enable(self, name: str, enabled: bool = True) -> KeptSchedule:
        """Let a schedule fire, or not. Times while it was disabled are not made up for."""
        await self.records.existing(name)

        def change(before: KeptSchedule | None, now: Any) -> KeptSchedule:
            if before is None:
                raise RecordConflict(f'schedule "{name}" was removed meanwhile')
            return before.changed(msgspec.structs.replace(before.schedule, enabled=enabled), now)

        kept = await self._change(name, change)
        self._tell()
        return kept

    async def remove(self, name: str) -> KeptSchedule:
        """Forget a schedule. How far it had come is kept for a day, so that its past is never done
        again by a dispatcher whose clock is behind.
        """
        kept, _ = await self.records.existing(name)
        await self.records.delete(name)
        self._tell()
        return kept

    async def get(self, name: str) -> KeptSchedule:
        """One schedule, or an error that names the nearest ones."""
        return (await self.records.existing(name))[0]

    async def trigger(self, name: str, *, source: Source = "code", force: bool = False) -> Job:
        """Make a job now, beside the schedule's own times."""
        schedule = (await self.get(name)).schedule
        job = self.job(schedule, job_id=new_id(), source=source, meta={"triggered": True})
        for _ in range(TRIES):
            state, version = await self.records.state(name)
            if not schedule.allow_overlap and not force:
                for other in await self.unfinished(state):
                    raise JobConflict(
                        f'schedule "{name}" allows no overlap, and its job {other.id} is '
                        f"{other.status}; wait for it, cancel it, or make one all the same "
                        "(--force)"
                    )
            run = FiredRun(job.id, None, self._host.clock.utcnow())
            change = self.records.state_change(name, state.triggered(run), version)
            try:
                # In one step, so that the schedule's own times see that it is unfinished.
                await self._host.engine.insert([job], record=change)
            except RecordConflict:
                continue
            return stored(job, self._host.clock.utcnow())
        raise _busy(name)

    # -- jobs ----------------------------------------------------------------------------------

    def job(
        self, schedule: Schedule, *, job_id: str, meta: dict[str, Any], **options: Any
    ) -> NewJob:
        """A job of a schedule, checked against its task as it is now."""
        bound = self._host.find_task(schedule.task).options(
            **{"source": "cron", **options}, meta={"schedule": schedule.name} | meta
        )
        job = bound.job_from_json(encode(schedule.params))
        job.id = job_id
        return job

    async def unfinished(self, state: ScheduleState) -> list[Job]:
        """The latest jobs of a schedule that have not ended yet."""
        jobs = await self._host.engine.get([run.job_id for run in state.runs])
        return [job for job in jobs if not job.status.final]

    async def statuses(self, states: Sequence[ScheduleState]) -> dict[str, Status]:
        """The status of the jobs that schedules have made; pruned ones are left out."""
        ids = [run.job_id for state in states for run in state.runs]
        return {job.id: job.status for job in await self._host.engine.get(ids)} if ids else {}

    def checked(self, schedule: Schedule, least_interval: float | None = None) -> Schedule:
        """The schedule as it is kept, if nothing is wrong with it."""
        try:
            schedule.checked()
            if least_interval is not None:
                parse_cron(schedule.expression).check_interval(least_interval)
            self.job(schedule, job_id=new_id(), meta={})
            # As it comes back from the engine, or two of the same would differ.
            params = msgspec.json.decode(encode(schedule.params))
        except (TypeError, UnicodeEncodeError) as error:
            raise InvalidSetting(
                f'schedule "{schedule.name}": {error}; give params as plain data'
            ) from None
        except HeadraceError as error:
            error.add_note(f'schedule "{schedule.name}"')
            raise
        return msgspec.structs.replace(schedule, params=params)

    async def _change(
        self, name: str, change: Callable[[KeptSchedule | None, Any], KeptSchedule]
    ) -> KeptSchedule:
        for _ in range(TRIES):
            before, version = await self.records.versioned(name)
            after = change(before, self._host.clock.utcnow())
            if after == before or await self.records.put(after, version):
                return after
        raise _busy(name)

    def _tell(self) -> None:
        for call in self.on_change:
            call()


def _declaration(
    schedule: Schedule, origin: str
) -> Callable[[KeptSchedule | None, Any], KeptSchedule]:
    def change(before: KeptSchedule | None, now: Any) -> KeptSchedule:
        if before is None:
            return KeptSchedule(schedule=schedule, since=now, origin=origin, declared=schedule)
        said = before.declared
        if said == schedule and before.origin == origin:
            return before
        stays = said is not None and said.enabled == schedule.enabled
        enabled = before.schedule.enabled if stays else schedule.enabled
        applied = before.changed(msgspec.structs.replace(schedule, enabled=enabled), now)
        return msgspec.structs.replace(applied, origin=origin, declared=schedule)

    return change


def _busy(name: str) -> RecordConflict:
    return RecordConflict(f'schedule "{name}" is being changed by others; try again')
