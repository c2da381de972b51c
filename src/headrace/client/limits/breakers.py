"""Verbs for circuit breakers."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.api_types.breakers import BreakerClosed, CloseBreakerRequest, OpenBreakerRequest
from headrace.client.base import BaseClient, given
from headrace.model.limits.breaker import BreakerView
from headrace.model.names import check_name, check_text


class BreakersApi(BaseClient):
    """A server, for keys of scope admin; reading needs scope read."""

    async def breakers(
        self, *, queue: str | None = None, lane: str | None = None
    ) -> Sequence[BreakerView]:
        """The circuit breakers that are open, by queue and lane."""
        params = given(
            queue=None if queue is None else check_name("queue", queue),
            lane=None if lane is None else check_text("lane", lane),
        )
        return await self._list("/breakers", "breakers", BreakerView, params)

    async def open_breaker(
        self, queue: str, lane: str, *, pause: float | None = None, reason: str | None = None
    ) -> BreakerView:
        """Start nothing more of a lane for `pause` seconds, and then try one job; as long as its
        breaker says if it is not given.
        """
        asked = OpenBreakerRequest(
            queue=check_name("queue", queue),
            lane=check_text("lane", lane),
            pause=pause,
            reason=reason,
        )
        return await self._send("POST", "/breakers/open", BreakerView, asked)

    async def close_breaker(self, queue: str, lane: str) -> bool:
        """Start the jobs of a lane again, and forget its failures; False if it was not open."""
        asked = CloseBreakerRequest(queue=check_name("queue", queue), lane=check_text("lane", lane))
        closed = await self._send("POST", "/breakers/close", BreakerClosed, asked)
        return closed.was_open
