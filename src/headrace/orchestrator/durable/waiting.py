"""Sleeps and waits without a slot: recorded, then the handler is suspended until it is time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import WaitTimedOut
from headrace.model.durable.awaited import EVENT, AwaitedEvent
from headrace.model.durable.entries import SLEEP, WAIT, SleepRecord, WaitRecord
from headrace.model.durable.writes import Entry
from headrace.model.retry import LONGEST_DELAY

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext

# Suspending and resuming a job costs more than sleeping this long in its slot.
SHORT = 1.0


class SleepAndWait:
    """The sleeps and waits of one attempt. Used on the worker's event loop."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        # The engine's time when it was last read: what was over then is over.
        self._engine_time = 0.0

    async def sleep(self, entry_name: str, seconds: float | None, until: float | None) -> None:
        """Return when it is time; suspend the handler unless that is soon."""
        context = self._context
        recorded = (await context.replayed.of_kind(SLEEP)).get(entry_name)
        if recorded is not None:
            until = msgspec.json.decode(recorded, type=SleepRecord).until
        if until is not None:
            # A handler that has slept a thousand times replays all of these sleeps.
            left = until - (self._engine_time if until <= self._engine_time else await self._now())
        else:
            left = seconds or 0.0
            if left > SHORT:
                until = await self._now() + left
        if until is not None and left > SHORT:
            if recorded is None:
                await context.write(entry=_entry(SLEEP, entry_name, SleepRecord(until)))
            context.suspend(left)
        if left > 0:
            await asyncio.sleep(left)

    async def wait(self, entry_name: str, event: str, timeout: float | None) -> bytes:
        """Return the body of a signal; suspend the handler until it arrives."""
        context = self._context
        recorded = (await context.replayed.of_kind(WAIT)).get(entry_name)
        record = None if recorded is None else msgspec.json.decode(recorded, type=WaitRecord)
        if record is not None and record.timed_out:
            raise _timed_out(event)
        body = await self._event(event)
        if body is not None:
            return body
        if record is None:
            until = None if timeout is None else await self._now() + timeout
            record = WaitRecord(until=until)
            if timeout != 0:
                await context.write(entry=_entry(WAIT, entry_name, record))
        left = LONGEST_DELAY if record.until is None else record.until - await self._now()
        if left > 0:
            context.suspend(left, (AwaitedEvent(event),))
        # Recorded: from here on it is too late, whatever arrives.
        record.timed_out = True
        await context.write(entry=_entry(WAIT, entry_name, record))
        raise _timed_out(event)

    async def _now(self) -> float:
        self._engine_time = await self._context.now()
        return self._engine_time

    async def _event(self, event: str) -> bytes | None:
        body: bytes | None = (await self._context.replayed.of_kind(EVENT)).get(event)
        if body is not None:
            return self._opened(event, body)
        # It may have arrived since; also before the first attempt.
        for entry in await self._context.entries(EVENT):
            if entry.name == event:
                return self._opened(event, entry.body)
        return None

    def _opened(self, event: str, body: bytes) -> bytes:
        context = self._context
        return context.sealing.open_event(context.job_id, event, body) if context.sealed else body


def _entry(kind: str, entry_name: str, record: msgspec.Struct) -> Entry:
    return Entry(kind, entry_name, msgspec.json.encode(record))


def _timed_out(event: str) -> WaitTimedOut:
    return WaitTimedOut(f"event {event!r} did not come in the time given")
