"""What an engine says that does not know rates yet."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import InvalidSetting
from headrace.model.job import NewJob
from headrace.model.rate import Rate, RateView


def _refusal(name: str) -> InvalidSetting:
    return InvalidSetting(
        f"rate, hold_lane and RateLimited(key=True) do not work on {name} yet; use a sqlite: or "
        "redis: URL, or leave them out"
    )


def refuse_rates(name: str, jobs: Sequence[NewJob]) -> None:
    """Raise `InvalidSetting` if one of these has a rate."""
    if [job for job in jobs if job.rate is not None]:
        raise _refusal(name)


class WithoutRates:
    """The verbs of rates, all of them refused."""

    name: str

    async def set_rate(self, queue: str, lane: str, rate: Rate | None) -> None:
        raise _refusal(self.name)

    async def hold_lane(self, queue: str, lane: str, seconds: float) -> None:
        raise _refusal(self.name)

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[RateView]:
        return []
