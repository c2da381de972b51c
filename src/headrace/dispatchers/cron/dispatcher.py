"""The cron dispatcher: makes jobs when their time has come. `python -m headrace.dispatchers.cron`.

Any number of dispatchers may run on one engine; each time of a schedule makes one job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from headrace.dispatchers.cron.config import CronSettings, read_file
from headrace.dispatchers.cron.firing import Firing
from headrace.dispatchers.cron.schedules import Schedules
from headrace.dispatchers.heartbeat import DispatcherHeartbeat
from headrace.errors import (
    EngineError,
    EngineUnavailable,
    HeadraceError,
    InvalidInput,
    InvalidSetting,
)
from headrace.loops.free_memory import memory_given_back
from headrace.loops.loop import Loop
from headrace.loops.signals import (
    check_failures,
    on_stop_signals,
    start_when_available,
    wait_checking,
)
from headrace.model.ids import new_id
from headrace.model.schedules.schedule import Schedule, ScheduleState
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.cron")

# A timer may ring a little early, and would then only be set again.
MARGIN = 0.002
AT_A_STRETCH = 100
# How the origin of a schedule begins that a file declares.
FILE = "file "
# Schedules that are fired at the same time; midnight is the time of many.
TOGETHER = 32
# How far a removed schedule had come is kept for so long, in case it comes back.
FORGET_AFTER = timedelta(days=1)
FORGET_EVERY = timedelta(hours=1)


class ScheduledApp(AppLike, Protocol):
    """An App with schedules."""

    @property
    def schedules(self) -> Schedules:
        """The schedules of the App."""


class CronDispatcher(Loop):
    """Sleeps until the next time of any schedule, and makes its job.

    Schedules declared in code are stored when it starts, and those given in `files`, by the place
    they were read from. A change in this process is taken up at once, others at the next poll.
    """

    name = "cron"

    def __init__(
        self,
        app: ScheduledApp,
        *,
        settings: CronSettings | None = None,
        files: dict[str, Sequence[Schedule]] | None = None,
    ) -> None:
        super().__init__()
        self.app = app
        self.schedules = app.schedules
        self.settings = settings or CronSettings()
        self.schedules.least_interval = self.settings.min_cron_interval_seconds
        self.files = files or {}
        self.id = f"{socket.gethostname()}:{os.getpid()}:{new_id()[-6:]}"
        self.firing = Firing(app, self.schedules, settings=self.settings)
        self.problems: dict[str, str] = {}
        self.next_times: dict[str, datetime] = {}
        self.heartbeat = DispatcherHeartbeat(
            host=app,
            type="cron",
            adapter="cron",
            report=self.report,
            name=self.id,
            on_answer=self.retry_now,
        )
        self._poll_at: datetime | None = None
        self._forgot_at: datetime | None = None
        self._synced = False

    @property
    def lag(self) -> float:
        """How many seconds late the last job was made."""
        return self.firing.lag

    async def report(self) -> dict[str, object]:
        """What others are told about it."""
        return {
            "schedules": len(self.next_times),
            "next_at": min(self.next_times.values(), default=None),
            "stored": self.firing.made,
            "late_seconds": self.lag,
            "problems": len(self.problems),
            "healthy": self.healthy,
        }

    def start(self) -> asyncio.Task[None]:
        """Begin, and let others know."""
        self.heartbeat.start()
        return super().start()

    def changed(self) -> None:
        """Read the schedules again, now."""
        self._poll_at = None
        self.wake()

    async def stop(self, patience: float = 5.0) -> None:
        """End after the round that is under way."""
        if self.changed in self.schedules.on_change:
            self.schedules.on_change.remove(self.changed)
        await super().stop(patience)
        await self.heartbeat.stop()

    async def sync(self) -> None:
        """Store what is declared in code and in files. Bad declarations raise."""
        owner = self.settings.owner or self.app.settings.schedules_owner
        declared: dict[str, Sequence[Schedule]] = {
            self.schedules.origin: list(self.schedules.declared.values()),
            **{f"{FILE}{place}": schedules for place, schedules in self.files.items()},
        }
        names = [each.name for schedules in declared.values() for each in schedules]
        for place, schedules in declared.items():
            refused = await self.schedules.sync(schedules, place, owner=owner, elsewhere=names)
            for name, reason in refused.items():
                log.error("Schedule %s of %s is not stored: %s", name, place, reason)
        await self._warn_of_missing_files(names, owner)
        self._synced = True

    async def _warn_of_missing_files(self, declared: Collection[str], owner: str | None) -> None:
        """Say which schedules go on although the file that declared them is not there. Whether it
        was deleted, or is that of a program elsewhere, cannot be told from here, so they stay.
        """
        for kept in await self.schedules.records.all():
            name, origin = kept.schedule.name, kept.origin
            if name in declared or not origin.startswith(FILE) or kept.owner not in (None, owner):
                continue
            path = origin.removeprefix(FILE).removesuffix(f" of {kept.owner}")
            if path not in self.files and not await asyncio.to_thread(Path(path).exists):
                log.warning(
                    "Schedule %s was declared in %s, and there is no such file here: it stays. "
                    "Remove it if the file was deleted: headrace schedules remove %s",
                    *(name, path, name),
                )

    async def tick(self) -> float:
        """Make what is due. Returns how long to sleep."""
        await self.app.open()
        if not self._synced:
            await self.sync()
        if self.changed not in self.schedules.on_change:
            self.schedules.on_change.append(self.changed)
        now = self.app.clock.utcnow()
        if self._poll_at is None or now >= self._poll_at:
            # Before it reads: a change that comes meanwhile, and is not among it, asks for another.
            self._poll_at = now + timedelta(seconds=self.settings.poll_interval_seconds)
            try:
                await self._poll(now)
            except BaseException:
                self._poll_at = None
                raise
        due = sorted((time, name) for name, time in self.next_times.items() if time <= now)
        for start in range(0, len(due), TOGETHER):
            await self._fire_all([name for _, name in due[start : start + TOGETHER]])
        return self._pause()

    async def _poll(self, now: datetime) -> None:
        states = await self.schedules.records.states()
        kept = await self.schedules.records.all()
        await self._forget({each.schedule.name for each in kept}, now)
        self.next_times = {}
        for number, each in enumerate(kept, 1):
            if number % AT_A_STRETCH == 0:
                await asyncio.sleep(0)  # thousands of schedules must not hold up the loop
            schedule = each.schedule
            if not schedule.enabled or not self._may_fire(schedule):
                continue
            state = states.get(schedule.name, ScheduleState())
            if isinstance(state, InvalidSetting):
                self._problem(schedule.name, state)
                continue
            if time := next(schedule.times(state.base(each.since)), None):
                self.next_times[schedule.name] = time

    async def _forget(self, existing: set[str], now: datetime) -> None:
        """Let go of what is known about schedules that are gone, now and then."""
        for name in self.problems.keys() - existing:
            del self.problems[name]
        # A clock that was put back must not keep it from ever happening again.
        if self._forgot_at is None or abs(now - self._forgot_at) > FORGET_EVERY:
            await self.schedules.records.forget_states(existing, now - FORGET_AFTER)
            self._forgot_at = now

    def _may_fire(self, schedule: Schedule) -> bool:
        try:
            schedule.cron.check_interval(self.settings.min_cron_interval_seconds)
        except InvalidSetting as error:
            self._problem(schedule.name, error)
            return False
        return True

    async def _fire_all(self, names: Sequence[str]) -> None:
        """Side by side, so that they share round trips; each ends before trouble is told."""
        ended = await asyncio.gather(*map(self._fire, names), return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error

    async def _fire(self, name: str) -> None:
        """One schedule that cannot be fired here does not keep the others waiting."""
        try:
            again = await self.firing.fire(name)
        except EngineError:
            raise
        except HeadraceError as error:
            again = None  # at the next poll
            self._problem(name, error)
        else:
            self.problems.pop(name, None)
        if again is None:
            self.next_times.pop(name, None)
        else:
            self.next_times[name] = again

    def _problem(self, name: str, error: HeadraceError) -> None:
        problem = f"{type(error).__name__}: {error}"
        if self.problems.get(name) != problem:
            log.error("Schedule %s cannot be fired here: %s", name, problem)
        self.problems[name] = problem

    def _pause(self) -> float:
        now = self.app.clock.utcnow()
        ends = [*self.next_times.values(), *([self._poll_at] if self._poll_at else [now])]
        pause = (min(ends) - now).total_seconds() + MARGIN
        return min(max(pause, 0.0), self.settings.max_sleep_seconds)


def cron_dispatcher(app: ScheduledApp, config: Path | None = None) -> CronDispatcher:
    """A dispatcher with the settings and schedules of a file; by default of the usual one, if it
    exists. Everything in the file is checked, also against the tasks of the App.
    """
    file = read_file(config)
    if file is None:
        return CronDispatcher(app)
    least = file.settings.min_cron_interval_seconds
    for schedule in file.schedules:
        try:
            app.schedules.checked(schedule, least)
        except InvalidInput as error:
            error.add_note(file.at(schedule.name))
            raise
    return CronDispatcher(app, settings=file.settings, files={str(file.path): file.schedules})


async def run_cron(dispatcher: CronDispatcher) -> int:
    """Run until SIGTERM or SIGINT, then end after what is under way. Return the exit code.

    Raises what is wrong with declared schedules, and `WorkerUnhealthy` if the engine is away for
    longer than `connection_retries` allows.
    """
    stop = asyncio.Event()
    retries = dispatcher.app.settings.connection_retries

    def check() -> None:
        if isinstance(dispatcher.last_error, EngineUnavailable):
            check_failures(dispatcher.failures, dispatcher.last_error, retries=retries)

    with on_stop_signals(lambda _: stop.set()), memory_given_back():
        try:
            if await start_when_available(dispatcher.sync, stop, retries=retries, log=log):
                dispatcher.start()
                await wait_checking(stop, check)
        finally:
            await dispatcher.stop()
    return 0
