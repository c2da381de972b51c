"""Sleeps and waits that hold no slot: written down, then the handler is left until it is time."""

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

# To leave a slot and come back costs more than so much of waiting in it.
SHORT = 1.0


class SleepAndWait:
    """The sleeps and waits of one attempt. Used on the worker's loop."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        # The engine's time at the last question: what was over then is over.
        self._heard = 0.0

    async def sleep(self, step_name: str, seconds: float | None, until: float | None) -> None:
        """Return when it is time; leave the handler if that is not soon."""
        context = self._context
        kept = (await context.replayed.of_kind(SLEEP)).get(step_name)
        if kept is not None:
            until = msgspec.json.decode(kept, type=SleepRecord).until
        if until is not None:
            # A handler that has slept a thousand times passes all of these each time it goes on.
            left = until - (self._heard if until <= self._heard else await self._now())
        else:
            left = seconds or 0.0
            if left > SHORT:
                until = await self._now() + left
        if until is not None and left > SHORT:
            if kept is None:
                await context.write(entry=_entry(SLEEP, step_name, SleepRecord(until)))
            context.suspend(left)
        if left > 0:
            await asyncio.sleep(left)

    async def wait(self, step_name: str, event: str, timeout: float | None) -> bytes:
        """The body of an event; leave the handler while it is not there."""
        context = self._context
        kept = (await context.replayed.of_kind(WAIT)).get(step_name)
        record = None if kept is None else msgspec.json.decode(kept, type=WaitRecord)
        if record is not None and record.timed_out:
            raise _timed_out(event)
        body = await self._event(event)
        if body is not None:
            return body
        if record is None:
            until = None if timeout is None else await self._now() + timeout
            record = WaitRecord(until=until)
            if timeout != 0:
                await context.write(entry=_entry(WAIT, step_name, record))
        left = LONGEST_DELAY if record.until is None else record.until - await self._now()
        if left > 0:
            context.suspend(left, (AwaitedEvent(event),))
        # From here on it is settled that it came too late, whatever arrives.
        record.timed_out = True
        await context.write(entry=_entry(WAIT, step_name, record))
        raise _timed_out(event)

    async def _now(self) -> float:
        self._heard = await self._context.now()
        return self._heard

    async def _event(self, event: str) -> bytes | None:
        body: bytes | None = (await self._context.replayed.of_kind(EVENT)).get(event)
        if body is not None:
            return body
        # It may have come since; also before the first attempt.
        for entry in await self._context.entries(EVENT):
            if entry.name == event:
                return entry.body
        return None


def _entry(kind: str, step_name: str, record: msgspec.Struct) -> Entry:
    return Entry(kind, step_name, msgspec.json.encode(record))


def _timed_out(event: str) -> WaitTimedOut:
    return WaitTimedOut(f"event {event!r} did not come in the time given")
