"""Schedules: declared in code, kept in the engine, changed by people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec

from headrace.dispatchers.cron.declaration import ScheduleOfOtherOwner, declaration
from headrace.dispatchers.cron.sealed_params import SEALED
from headrace.dispatchers.cron.store import ScheduleRecords
from headrace.engine.bounded_reads import parts
from headrace.enqueue import stored
from headrace.errors import HeadraceError, InvalidSetting, JobConflict, RecordConflict, SealedValue
from headrace.model.ids import new_id
from headrace.model.job import Job, NewJob, Source
from headrace.model.schedules.cron import LEAST_INTERVAL, parse_cron
from headrace.model.schedules.schedule import (
    FiredRun,
    KeptSchedule,
    Missed,
    Schedule,
    ScheduleState,
)
from headrace.model.status import Status
from headrace.model.views import RecordChange
from headrace.task import Task
from headrace.task.app_like import AppLike
from headrace.task.codec import encode_exact
from headrace.task.options import check_options

log = logging.getLogger("headrace.cron")

TRIES = 20

T = TypeVar("T", bound=Task[..., Any])


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
        if not isinstance(expression, str):
            raise InvalidSetting(
                f"a schedule needs an expression, got {expression!r}; write "
                '@app.schedule("*/5 * * * *") above @app.task'
            )
        check_options("schedule", options, ScheduleOptions.__annotations__)

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
        check_options("schedule", options, ScheduleOptions.__annotations__)
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
        self,
        schedules: Sequence[Schedule],
        origin: str,
        *,
        owner: str | None = None,
        elsewhere: Collection[str] = (),
    ) -> dict[str, str]:
        """Store what a service declares in one place: `code …`, or `file …`. What people have
        changed by hand stays, unless the declaration has changed as well. Returns why some are not
        stored: another service owns a schedule of that name.

        The `owner` is the name of the service. What it has declared in such a place before and does
        not any more is removed, unless it declares it `elsewhere` now. Without a name nobody can
        tell a schedule that is gone from one of another service, so it stays, and a warning says
        so.
        """
        declared = {each.name: self.checked(each, self.least_interval) for each in schedules}
        await self._host.open()
        refused: dict[str, str] = {}
        place = origin if owner is None else f"{origin} of {owner}"
        for schedule in declared.values():
            try:
                await self._change(schedule.name, declaration(schedule, place, owner))
            except (ScheduleOfOtherOwner, SealedValue) as error:
                refused[schedule.name] = str(error)
        for kept in await self.records.all():
            if kept.schedule.name not in {*declared, *elsewhere}:
                await self._undeclared(kept, origin, owner)
        self._tell()
        return refused

    async def _undeclared(self, kept: KeptSchedule, origin: str, owner: str | None) -> None:
        """Remove a schedule that its owner does not declare any more, if this is its owner."""
        name = kept.schedule.name
        kind = origin.partition(" ")[0]
        if owner is not None and kept.owner == owner and kept.origin.partition(" ")[0] == kind:
            log.info("Schedule %s is no longer declared: removed", name)
            await self.records.delete(name)
        elif kept.owner is None and kept.origin == origin:
            log.warning(
                "Schedule %s was declared in %s and is not any more, or by another service: it "
                "stays. Remove it: headrace schedules remove %s. To have that done by itself, give "
                "your service a name (HEADRACE_SCHEDULES_OWNER)",
                *(name, origin, name),
            )

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
        if name not in self.declared:
            await self.records.existing(name)
        await self._host.open()

        def change(before: KeptSchedule | None, now: Any) -> KeptSchedule:
            if before is None and name in self.declared:
                before = self.as_declared(name, now)
            if before is None:
                raise RecordConflict(f'schedule "{name}" was removed meanwhile')
            return before.changed(msgspec.structs.replace(before.schedule, enabled=enabled), now)

        kept = await self._change(name, change)
        self._tell()
        return kept

    async def remove(self, name: str) -> None:
        """Forget a schedule, also one that cannot be read. How far it had come is kept for a day,
        so that its past is never done again by a dispatcher whose clock is behind.
        """
        await self._host.open()
        if name in self.declared and not await self.records.exists(name):
            raise InvalidSetting(
                f'schedule "{name}" is declared in code, and not stored yet; remove it there, or '
                f"keep it off: headrace schedules disable {name}"
            )
        await self.records.remove(name)
        self._tell()

    async def get(self, name: str) -> KeptSchedule:
        """One schedule, or an error that names the nearest ones. One that is declared counts, also
        if no dispatcher has stored it yet.
        """
        await self._host.open()
        if name in self.declared and await self.records.find(name) is None:
            return self.as_declared(name, self._host.clock.utcnow())
        return (await self.records.existing(name))[0]

    def as_declared(self, name: str, now: datetime) -> KeptSchedule:
        """A schedule of this program's code, as a dispatcher that starts now would store it."""
        declared = self.declared[name]
        return KeptSchedule(schedule=declared, since=now, origin=self.origin, declared=declared)

    @property
    def origin(self) -> str:
        """Where the schedules are declared that are in this program's code."""
        reference = self._host.settings.app
        return "code" if reference is None else f"code {reference}"

    async def trigger(self, name: str, *, source: Source = "code", force: bool = False) -> Job:
        """Make a job now, beside the schedule's own times."""
        schedule = (await self.get(name)).schedule
        job = self.job(schedule, job_id=new_id(), source=source, meta={"triggered": True})
        for _ in range(TRIES):
            state, version = await self.records.state(name)
            unfinished = [] if schedule.allow_overlap else await self.unfinished(state)
            if unfinished and not force:
                other = unfinished[0]
                raise JobConflict(
                    f'schedule "{name}" allows no overlap, and its job {other.id} is '
                    f"{other.status}; wait for it, cancel it, or make one all the same (--force)"
                )
            after = state.triggered(FiredRun(job.id, None, self._host.clock.utcnow()))
            if not schedule.allow_overlap:
                after = after.with_unfinished(each.id for each in unfinished)
            change = self.records.state_change(name, after, version)
            try:
                # In one step, so that the schedule's own times see that it is unfinished.
                job = await self._insert(job, change)
            except RecordConflict:
                continue
            return stored(job, self._host.clock.utcnow())
        raise _busy(name)

    async def _insert(self, job: NewJob, change: RecordChange) -> NewJob:
        if self._host.tracing is None:
            await self._host.engine.insert([job], record=change)
            return job
        with self._host.tracing.enqueuing(job) as traced:
            await self._host.engine.insert([traced], record=change)
        return traced

    # -- jobs ----------------------------------------------------------------------------------

    def job(
        self, schedule: Schedule, *, job_id: str, meta: dict[str, Any], **options: Any
    ) -> NewJob:
        """A job of a schedule, checked against its task as it is now."""
        bound = self._host.find_task(schedule.task).options(
            **{"source": "cron", **options}, meta={"schedule": schedule.name} | meta
        )
        encoded = encode_exact(schedule.params)
        if SEALED in schedule.params:
            encoded = self.records.params.json(schedule)
        return bound.job_from_json(encoded, job_id=job_id)

    async def unfinished(self, state: ScheduleState) -> list[Job]:
        """The jobs of a schedule that have not ended yet: of the latest, and of those that were
        unfinished before.
        """
        ids = [*state.unfinished, *(run.job_id for run in state.runs)]
        found = [job async for some in parts(self._host.engine, ids) for job in some]
        return [job for job in found if not job.status.final]

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
            self._host.find_task(schedule.task).options().check_json(encode_exact(schedule.params))
            # As it comes back from the engine, or two of the same would differ.
            params = msgspec.json.decode(encode_exact(schedule.params))
        except (TypeError, ValueError) as error:
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
            stored, version = await self.records.versioned(name)
            before = None if stored is None else self.records.params.opened(stored)
            after = change(before, self._host.clock.utcnow())
            if after == before or await self.records.put(after, version):
                return after
        raise _busy(name)

    def _tell(self) -> None:
        for call in self.on_change:
            call()


def _busy(name: str) -> RecordConflict:
    return RecordConflict(f'schedule "{name}" is being changed by others; try again')
