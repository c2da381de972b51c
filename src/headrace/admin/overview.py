"""The verbs of an App for what operators look at: queues, lanes, workers, dispatchers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

import msgspec

from headrace.admin.limits.breakers import BreakerVerbs
from headrace.engine import pauses
from headrace.errors import InvalidInput
from headrace.model.job import JobFilter
from headrace.model.limits.rate import Rate, RateView
from headrace.model.names import check_name, check_text
from headrace.model.times import check_delay, check_moment, in_utc, moment_of
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker

if TYPE_CHECKING:
    from headrace.api_types.monitoring import ErrorGroups, Summary
    from headrace.api_types.responses import DispatcherView, QueuePaused, Running
    from headrace.monitor.findings.summary import Summaries
    from headrace.task.app_like import AppLike

REASON_LIMIT = 1_000


class OverviewVerbs(BreakerVerbs):
    """What goes on, what is wrong, and pausing queues."""

    _summaries: tuple[asyncio.AbstractEventLoop, Summaries] | None = None

    async def summary(self) -> Summary:
        """Return how things are, and what is wrong in sentences, at most a second old."""
        from headrace.monitor.findings.summary import Summaries  # noqa: PLC0415

        await self.open()
        loop = asyncio.get_running_loop()
        if self._summaries is None or self._summaries[0] is not loop:
            self._summaries = (loop, Summaries(cast("AppLike", self)))
        return await self._summaries[1].get()

    async def errors(
        self,
        *,
        queues: Sequence[str] = (),
        tasks: Sequence[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> ErrorGroups:
        """Return the newest failed jobs in groups by task, type of the error and fingerprint. Times
        are those at which they finished.
        """
        from headrace.monitor.errors import error_groups  # noqa: PLC0415

        await self.open()
        wanted = JobFilter(
            queues=tuple(check_name("queue", each) for each in queues),
            tasks=tuple(check_name("task", each) for each in tasks),
            finished_after=since,
            finished_before=until,
        )
        return await error_groups(self._engine, wanted)

    async def running(self) -> Running:
        """Return what runs now, and how many jobs wait in each queue."""
        from headrace.monitor.running import running  # noqa: PLC0415

        await self.open()
        return (await running(self._engine, self.clock.now())).answer().data

    async def queues(self) -> Sequence[QueueView]:
        """Return every queue that has been used or paused, by name, and who paused it."""
        await self.open()
        return await pauses.described(self._engine, await self._engine.queues())

    async def pause(
        self,
        queue: str,
        *,
        reason: str | None = None,
        until: datetime | None = None,
        duration: float | None = None,
        by: str | None = None,
    ) -> QueuePaused:
        """Start no more jobs of a queue. Running ones go on. Workers resume it at `until`, or after
        `duration` seconds; a second pause replaces the reason and the end of the first. `by` is
        who people see.
        """
        from headrace.api_types.responses import QueuePaused  # noqa: PLC0415

        check_name("queue", queue)
        if reason is not None:
            reason = check_reason(reason)
        by = None if by is None else check_text("by", by)
        await self.open()
        now = await self._engine.now()
        ends = pause_end(until, duration, now)
        pause = pauses.Pause(at=moment_of(now), by=by, reason=reason, until=ends)
        await pauses.pause(self._engine, queue, pause)
        return QueuePaused(queue, True, by, pause.at, reason, ends)

    async def resume(self, queue: str) -> QueuePaused:
        """Start the jobs of a queue again."""
        from headrace.api_types.responses import QueuePaused  # noqa: PLC0415

        check_name("queue", queue)
        await self.open()
        await pauses.resume(self._engine, queue, moment_of(await self._engine.now()))
        return QueuePaused(queue, False)

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[LaneView]:
        """Return lanes with holders or waiting jobs, the most waiting first."""
        await self.open()
        return await self._engine.lanes(
            queue=None if queue is None else check_name("queue", queue),
            lane=None if lane is None else check_text("lane", lane),
            limit=limit,
        )

    # -- rates and holds -----------------------------------------------------------------------

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[RateView]:
        """Return the queues and lanes that have a rate or are held, by name, and how many of their
        jobs wait. The lane "" is the queue itself.
        """
        from headrace.admin.limits import rates  # noqa: PLC0415

        await self.open()
        return await rates.find(self._engine, queue, lane, limit)

    async def set_rate(
        self, queue: str, rate: str | Rate, *, lane: str = "", burst: int | None = None
    ) -> RateView:
        """Let so many jobs of a lane start in a time, such as "10/m", up to `burst` of them at
        once. Without a lane it is the queue: all its jobs count. It counts whatever jobs and code
        say, until `remove_rate`.
        """
        from headrace.admin.limits import rates  # noqa: PLC0415

        checked = rates.check_rate(rate, burst)
        place = rates.check_place(queue, lane)
        await self.open()
        return await rates.change(self._engine, place, checked)

    async def remove_rate(self, queue: str, *, lane: str = "") -> RateView:
        """Take back what `set_rate` said: what jobs say counts again, if they do."""
        from headrace.admin.limits import rates  # noqa: PLC0415

        place = rates.check_place(queue, lane)
        await self.open()
        return await rates.change(self._engine, place, None)

    async def hold(
        self,
        queue: str,
        *,
        lane: str = "",
        until: datetime | None = None,
        duration: float | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> RateView:
        """Start nothing of a lane, or of a queue, before a time, or for `duration` seconds. Running
        jobs go on. A second hold replaces the first. `by` is who people see.
        """
        from headrace.admin.limits import rates  # noqa: PLC0415

        place = rates.check_place(queue, lane)
        reason = None if reason is None else check_reason(reason)
        by = None if by is None else check_text("by", by)
        await self.open()
        ends = hold_end(until, duration, await self._engine.now())
        return await rates.hold(self._engine, place, ends, reason=reason, by=by)

    async def release_hold(self, queue: str, *, lane: str = "") -> RateView:
        """End a hold, whoever asked for it. What is not held stays as it is."""
        from headrace.admin.limits import rates  # noqa: PLC0415

        place = rates.check_place(queue, lane)
        await self.open()
        return await rates.release(self._engine, place)

    async def workers(self) -> Sequence[Worker]:
        """Return workers, alive ones first, then by name."""
        await self.open()
        return await self._engine.workers()

    async def dispatchers(self) -> Sequence[DispatcherView]:
        """Return cron and event dispatchers, and how far behind they are."""
        from headrace.api_types.responses import DispatcherView  # noqa: PLC0415
        from headrace.monitor.snapshot import dispatchers  # noqa: PLC0415

        await self.open()
        found = await dispatchers(self._engine, self.clock.utcnow())
        return msgspec.convert(found, list[DispatcherView])


def check_reason(reason: str) -> str:
    """The reason of a pause or a hold, if it can be shown on a line."""
    if not reason.strip() or len(reason) > REASON_LIMIT or not reason.isprintable():
        raise InvalidInput(
            f"reason must be one line of 1 to {REASON_LIMIT:,} characters, got {reason[:60]!r}"
        )
    return reason.strip()


def hold_end(until: datetime | None, duration: float | None, now: float) -> float:
    """When a hold ends."""
    ends = pause_end(until, duration, now, "hold")
    if ends is None:
        raise InvalidInput(
            "a hold has an end: give `until` or a duration; to start nothing of a queue until "
            "somebody says so, pause it"
        )
    return ends.timestamp()


def pause_end(
    until: datetime | None, duration: float | None, now: float, what: str = "pause"
) -> datetime | None:
    """When a pause ends; None: when somebody resumes the queue."""
    if until is not None and duration is not None:
        raise InvalidInput(f"a {what} has an `until` or a duration, not both; leave one out")
    if duration is not None:
        return moment_of(now + check_delay(duration, "duration"))
    if until is None:
        return None
    if check_moment(until, "until") <= now:
        raise InvalidInput(f"until {until.isoformat()} has passed; choose a time to come")
    return in_utc(until)
