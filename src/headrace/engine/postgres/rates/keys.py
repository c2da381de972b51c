"""What operators do to rates, what people see of them, and how jobs say them.

A key is a queue and a lane in it; the lane "" is the queue itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from headrace.engine.postgres.connection.store import Store
from headrace.engine.postgres.sql import sql
from headrace.errors import InvalidSetting
from headrace.model.job import NewJob
from headrace.model.limits.rate import Rate, RateView
from headrace.model.outcome import Completed, Settlement
from headrace.model.times import kept_delay

# Before every row of a table.
_NO_PLACE = (0, 0)


class Rates(Store):
    """Setting, holding, showing and forgetting keys."""

    async def set_rate(self, queue: str, lane: str, rate: Rate | None) -> None:
        said = (None, None, None) if rate is None else (rate.count, rate.per, rate.burst)
        await self._common.fetch(sql.set_rate, self.clock.offset, queue, lane, *said)

    async def hold_lane(self, queue: str, lane: str, seconds: float) -> None:
        await self._common.fetch(sql.hold_lane, self.clock.offset, queue, lane, kept_delay(seconds))

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[RateView]:
        found = await self._views.fetch(sql.rates, self.clock.offset, queue, lane, limit)
        return [_view(row) for row in found]

    async def _forget_rates(self, limit: int) -> None:
        """Forget all that are idle, a step at a time: other verbs come in between."""
        after, count = _NO_PLACE, limit
        while count == limit > 0:
            [(after, count)] = await self._common.fetch(
                sql.forget_rates, self.clock.offset, after, limit
            )

    async def _set_rate_clocks(self, limit: int) -> None:
        """If the clock went back, who is parked does not wait for it to catch up."""
        after, count = _NO_PLACE, limit
        while count == limit > 0:
            [(after, count)] = await self._common.fetch(
                sql.set_rate_clocks, self.clock.offset, after, limit
            )

    async def _spare_rates(self, jobs: Sequence[NewJob]) -> None:
        """Keep the rates of jobs that a caller's transaction is about to store."""
        rated = [(job.queue, job.lane, rate_text(job)) for job in jobs if job.rate is not None]
        if rated:
            columns = (list(column) for column in zip(*rated, strict=True))
            await self._common.fetch(sql.spare_rates, self.clock.offset, *columns)


def _view(row: Any) -> RateView:
    return RateView(
        queue=row["queue"],
        lane=row["lane"],
        rate=None if row["count"] is None else Rate(row["count"], row["per"], row["burst"]),
        by_operator=row["by_operator"],
        next_at=row["next_at"],
        held_until=row["held_until"],
    )


def rate_text(job: NewJob) -> str | None:
    """Return what a job says of the rate of its lane, as the text of an array: count, per, burst,
    cost, and whether its retries count; None if it says nothing.
    """
    rate = job.rate
    if rate is None:
        return None
    if job.lane is None:
        raise InvalidSetting(
            f'rate={rate.words!r} of job {job.id} needs a lane; give headrace.Lane(…, rate="…")'
        )
    said = (rate.count, rate.per, rate.burst, job.cost, int(job.count_retries))
    return f"{{{','.join(map(repr, said))}}}"


def hold_column(settlements: Sequence[Settlement]) -> list[float]:
    """Return for how many seconds each outcome holds the lane of its job, in the order in which
    outcomes are sent; empty if none does.
    """
    if all(type(each.outcome) is Completed for each in settlements):
        return []
    ordered = sorted(settlements, key=attrgetter("job_id"))
    seconds = [kept_delay(getattr(each.outcome, "hold_lane", 0.0)) for each in ordered]
    return seconds if any(seconds) else []
