"""Setting rates, and holding lanes and queues, with who holds them and why."""

from __future__ import annotations

import msgspec

from headrace.engine.base import Engine
from headrace.engine.bounded_reads import records_of
from headrace.errors import InvalidInput
from headrace.model.limits.rate import Rate, RateView, as_rate
from headrace.model.names import check_name, check_text
from headrace.model.times import moment_of
from headrace.monitor.rates import (
    HOLD,
    Hold,
    Place,
    hold_key,
    read_hold,
    with_holds,
    with_waiting,
)

MOST = 10_000
# Records of holds that are over stay for so long: clocks of programs differ a little.
KEPT_SECONDS = 60.0


def check_place(queue: str, lane: str) -> Place:
    """A queue and a lane in it, if they can exist; the lane "" is the queue itself."""
    return check_name("queue", queue), "" if lane == "" else check_text("lane", lane)


def check_rate(rate: str | Rate, burst: int | None) -> Rate:
    """The rate that somebody wants to set."""
    if rate is None:
        raise InvalidInput(
            'rate must be a text such as "10/m", got None; to take a rate back, remove it'
        )
    return as_rate(rate, burst)


async def find(engine: Engine, queue: str | None, lane: str | None, limit: int) -> list[RateView]:
    """The keys that have a rate or a hold, with all that is known of them."""
    if not 1 <= limit <= MOST:
        raise InvalidInput(f"limit must be between 1 and {MOST}, got {limit!r}")
    found = await engine.rates(
        queue=None if queue is None else check_name("queue", queue),
        lane=lane if not lane else check_text("lane", lane),
        limit=limit,
    )
    # A hold that is over may be kept for a while.
    found = [each for each in found if each.rate is not None or each.held_until is not None]
    return await with_waiting(engine, await with_holds(engine, found))


async def one(engine: Engine, place: Place) -> RateView:
    """One key; as it is without a rate and a hold if it has neither."""
    queue, lane = place
    found = await find(engine, queue, lane, 1)
    return found[0] if found else RateView(queue=queue, lane=lane, rate=None)


async def change(engine: Engine, place: Place, rate: Rate | None) -> RateView:
    """Set what an operator says of a key, or take it back."""
    await engine.set_rate(*place, rate)
    return await one(engine, place)


async def hold(
    engine: Engine, place: Place, until: float, *, reason: str | None, by: str | None
) -> RateView:
    """Start nothing of a key before a time of the engine's clock."""
    await engine.hold_lane(*place, max(until - await engine.now(), 0.0))
    held = next(iter(await engine.rates(queue=place[0], lane=place[1])), None)
    if held is not None and held.held_until is not None:
        # With the end that the engine has: by it others know that this hold is meant.
        said = Hold(until=held.held_until, by=by, reason=reason)
        await engine.record_put(HOLD, hold_key(*place), msgspec.json.encode(said))
    await _forget(engine)
    return await one(engine, place)


async def release(engine: Engine, place: Place) -> RateView:
    """End a hold."""
    found = next(iter(await engine.rates(queue=place[0], lane=place[1])), None)
    if found is not None and found.held_until is not None:
        await engine.hold_lane(*place, 0.0)
    await engine.record_delete(HOLD, hold_key(*place))
    return await one(engine, place)


async def _forget(engine: Engine) -> None:
    """Delete what was said of holds that are over."""
    now = await engine.now()
    for record in await records_of(engine, HOLD):
        known = read_hold(record)
        if known is not None and known.until < moment_of(now - KEPT_SECONDS):
            await engine.record_delete(HOLD, record.key)
