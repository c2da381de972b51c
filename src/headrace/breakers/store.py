"""Open breakers and failures as records, and the holds that go with them.

A record of `OPEN` exists exactly while a breaker is open. Each change is guarded by its version, so
that of several at once one is applied; the others get `RecordConflict` and look again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from headrace.engine.base import Engine, Records
from headrace.engine.bounded_reads import records_of
from headrace.errors import RecordConflict
from headrace.model.limits.breaker import Breaker, BreakerView, FailureTimes
from headrace.model.times import moment_of
from headrace.model.views import Record

log = logging.getLogger("headrace.breakers")

OPEN = "breaker"
FAILURES = "breaker-failures"
# A hold is set a moment after its record; one that ends so much later is somebody else's.
HOLD_SLACK = 1.0
# So often a failure is added to a record that others change at the same time.
TRIES = 20

Key = tuple[str, str]
"""A queue and a lane in it."""


class OpenBreaker(msgspec.Struct, frozen=True):
    """An open breaker, and the version of its record."""

    view: BreakerView
    version: int

    @property
    def key(self) -> Key:
        """Its queue and lane."""
        return self.view.queue, self.view.lane

    @property
    def until(self) -> float:
        """When the next job may be tried, in the time of the engine."""
        return self.view.until.timestamp()


def name_of(key: Key) -> str:
    """E.g. "default/task:send": no queue has a slash in its name."""
    return f"{key[0]}/{key[1]}"


async def open_breaker(engine: Records, key: Key) -> OpenBreaker | None:
    """Return the breaker of a lane if it is open."""
    record = await engine.record_get(OPEN, name_of(key))
    return None if record is None else _read(record)


async def open_breakers(engine: Records) -> dict[Key, OpenBreaker]:
    """Return all that are open."""
    found = map(_read, await records_of(engine, OPEN))
    return {each.key: each for each in found if each is not None}


def _read(record: Record) -> OpenBreaker | None:
    try:
        return OpenBreaker(msgspec.json.decode(record.body, type=BreakerView), record.version)
    except msgspec.DecodeError as error:
        log.warning("The record of breaker %s cannot be read: %s", record.key, error)
        return None


async def count_failures(
    engine: Engine, key: Key, breaker: Breaker, times: Iterable[float], now: float
) -> int:
    """Add failures of a lane to those that are kept, and return how many of them matter now.

    Raises `RecordConflict` if others were faster again and again.
    """
    name, times = name_of(key), tuple(times)
    for tries in range(TRIES):
        record = await engine.record_get(FAILURES, name)
        kept = FailureTimes(breaker.within)
        if record is not None:
            with contextlib.suppress(msgspec.DecodeError):
                kept = msgspec.json.decode(record.body, type=FailureTimes)
        all_times = kept.adding(breaker, times, now)
        version = 0 if record is None else record.version
        try:
            await engine.record_put(FAILURES, name, msgspec.json.encode(all_times), version=version)
        except RecordConflict:
            if tries == TRIES - 1:
                raise
            continue
        return len(all_times.times)
    raise AssertionError("unreachable")


async def put(engine: Records, view: BreakerView, version: int | None) -> OpenBreaker:
    """Write an open breaker. `version` is the one that it must have; 0: it must not be open."""
    name = name_of((view.queue, view.lane))
    record = await engine.record_put(OPEN, name, msgspec.json.encode(view), version=version)
    return OpenBreaker(view, record.version)


async def change(engine: Records, current: OpenBreaker, **changes: Any) -> OpenBreaker:
    """Change an open breaker, unless somebody else has since it was read."""
    view = msgspec.structs.replace(current.view, **changes)
    return await put(engine, view, current.version)


async def put_off(
    engine: Engine, current: OpenBreaker, seconds: float, now: float, **changes: Any
) -> OpenBreaker:
    """Change an open breaker, of which nothing is started for so many seconds from now."""
    changed = await change(engine, current, until=moment_of(now + seconds), **changes)
    await hold(engine, changed, now)
    return changed


async def hold(
    engine: Engine, breaker: OpenBreaker, now: float, before: OpenBreaker | None = None
) -> None:
    """Have nothing of the lane of an open breaker started before its time. A longer hold stays,
    unless it is that of the breaker as it was `before`.
    """
    queue, lane = breaker.key
    held = await held_until(engine, breaker.key)
    ours = before is not None and held <= before.until + HOLD_SLACK
    if breaker.until > now and (held < breaker.until or ours):
        # As of now: it has to end when the record says, or nobody would know whose it is.
        seconds = breaker.until - await engine.now()
        if seconds > 0:
            await engine.hold_lane(queue, lane, seconds)


async def held_until(engine: Engine, key: Key) -> float:
    """Return until when a lane is held; 0: it is not."""
    for each in await engine.rates(queue=key[0], lane=key[1]):
        if each.held_until is not None:
            return each.held_until.timestamp()
    return 0.0


async def close(engine: Engine, current: OpenBreaker) -> None:
    """Close an open breaker, unless somebody has changed it since it was read.

    Its jobs start again, and its failures are forgotten.
    """
    await engine.record_delete(FAILURES, name_of(current.key))
    await engine.record_delete(OPEN, name_of(current.key), version=current.version)
    await release(engine, current)


async def release(engine: Engine, breaker: OpenBreaker) -> None:
    """End the hold of a breaker that is open no more. A longer one is somebody else's."""
    if 0.0 < await held_until(engine, breaker.key) <= breaker.until + HOLD_SLACK:
        await engine.hold_lane(*breaker.key, 0.0)


async def forget_failures(engine: Engine, now: float) -> None:
    """Delete the failures of lanes that matter no more."""
    for record in await records_of(engine, FAILURES):
        try:
            kept = msgspec.json.decode(record.body, type=FailureTimes)
        except msgspec.DecodeError:
            continue
        if kept.over(now):
            with contextlib.suppress(RecordConflict):
                await engine.record_delete(FAILURES, record.key, version=record.version)
