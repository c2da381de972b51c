"""Verbs for rates and holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.api_types.requests import HoldRequest, RateRequest
from headrace.client.base import BaseClient, given, path_to
from headrace.model.limits.rate import Rate, RateView, as_rate
from headrace.model.names import check_name, check_text


class RatesApi(BaseClient):
    """A server, for keys of scope admin; reading needs scope read."""

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> Sequence[RateView]:
        """Queues and lanes that have a rate or are held, by name. The lane "" is the queue."""
        params = given(
            queue=None if queue is None else check_name("queue", queue),
            lane=lane if not lane else check_text("lane", lane),
            limit=limit,
        )
        return await self._list("/rates", "rates", RateView, params)

    async def set_rate(
        self, queue: str, rate: str | Rate, *, lane: str = "", burst: int | None = None
    ) -> RateView:
        """Let so many jobs of a lane, or of a queue, start in a time, such as "10/m", up to `burst`
        of them at once. It counts whatever jobs say, until `remove_rate`.
        """
        checked = as_rate(rate, burst)
        asked = RateRequest(rate=checked.text, burst=checked.burst)
        return await self._change_rate("PUT", queue, "rate", lane, asked)

    async def remove_rate(self, queue: str, *, lane: str = "") -> RateView:
        """Take back what `set_rate` said: what jobs say counts again, if they do."""
        return await self._change_rate("DELETE", queue, "rate", lane)

    async def hold(
        self,
        queue: str,
        *,
        lane: str = "",
        until: datetime | None = None,
        duration: float | None = None,
        reason: str | None = None,
    ) -> RateView:
        """Start nothing of a lane, or of a queue, before a time, or for `duration` seconds."""
        asked = HoldRequest(until=until, duration=duration, reason=reason)
        return await self._change_rate("PUT", queue, "hold", lane, asked)

    async def release_hold(self, queue: str, *, lane: str = "") -> RateView:
        """End a hold, whoever asked for it. What is not held stays as it is."""
        return await self._change_rate("DELETE", queue, "hold", lane)

    async def _change_rate(
        self, method: str, queue: str, noun: str, lane: str, asked: msgspec.Struct | None = None
    ) -> RateView:
        path = f"{path_to('queues', 'queue', queue)}/{noun}"
        params = {"lane": check_text("lane", lane)} if lane else {}
        return await self._send(method, path, RateView, asked, idempotent=True, params=params)
