"""Rates of lanes and queues, and holds."""

from __future__ import annotations

import struct

from headrace.engine.redis.connection.store import RedisStore
from headrace.errors import InvalidSetting
from headrace.model.job import NewJob
from headrace.model.limits.rate import CLOCK_STEP_SECONDS, Rate, RateView
from headrace.model.times import kept_delay, moment_of

# What scripts/library/claim/rates.lua keeps of a job, and of a lane or a queue.
_JOB_RATE = struct.Struct("<ddIdB")
_KEPT = struct.Struct("<ddIddIddddd")
_MOMENT = struct.Struct("<d")
# So many are read at once.
_STRETCH = 500


def packed_rate(job: NewJob, rate: Rate) -> bytes:
    """What a job says of the rate of its lane."""
    if job.lane is None:
        raise InvalidSetting(
            f'rate={rate.words!r} of job {job.id} needs a lane; give headrace.Lane(…, rate="…")'
        )
    return _JOB_RATE.pack(rate.count, rate.per, rate.burst, job.cost, job.count_retries)


class Rates(RedisStore):
    """The verbs of rates in `headrace.engine.base.Steering` and `Viewing`."""

    async def set_rate(self, queue: str, lane: str, rate: Rate | None) -> None:
        said = (0, 0, 0) if rate is None else (repr(rate.count), repr(rate.per), rate.burst)
        await self.run("set_rate", queue, lane, *said)

    async def hold_lane(self, queue: str, lane: str, seconds: float) -> None:
        await self.run("hold_lane", queue, lane, repr(kept_delay(seconds)))

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[RateView]:
        first, last = "-", "+"
        if queue is not None:
            first, last = f"[{queue}\0", f"({queue}\1"
            if lane is not None:
                first = last = f"[{queue}\0{lane}"
        views: list[RateView] = []
        while len(views) < limit:
            stamp, *found = await self.run("rates", first, last, _STRETCH)
            (now,) = _MOMENT.unpack(stamp)
            for name, kept in zip(found[::2], found[1::2], strict=True):
                view = _view(name, kept, now)
                if view is not None and lane in (None, view.lane):
                    views.append(view)
            if len(found) < 2 * _STRETCH:
                break
            first = f"({found[-2].decode()}"
        return views[:limit]


def _view(name: bytes, kept: bytes, now: float) -> RateView | None:
    """What people see of a key; None if it has neither a rate nor a hold any more."""
    queue, _, lane = name.decode().partition("\0")
    numbers = _KEPT.unpack_from(kept)
    tat, held_until = numbers[6:8]
    ahead = numbers[10] - now
    if ahead > CLOCK_STEP_SECONDS:
        tat -= ahead
    by_jobs, by_operator = _rate(*numbers[:3]), _rate(*numbers[3:6])
    rate = by_operator or by_jobs
    if rate is None and held_until <= now:
        return None
    opens = held_until
    if rate is not None:
        paid = rate.after_hold(tat, held_until) if held_until else tat
        opens = max(rate.opens_at(paid), held_until)
    return RateView(
        queue=queue,
        lane=lane,
        rate=rate,
        by_operator=by_operator is not None,
        next_at=moment_of(opens) if opens > now else None,
        held_until=moment_of(held_until) if held_until > now else None,
    )


def _rate(count: float, per: float, burst: int) -> Rate | None:
    return Rate(count, per, burst) if count else None
