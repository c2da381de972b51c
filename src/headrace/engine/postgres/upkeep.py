"""What keeps the store moving."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.postgres import rows
from headrace.engine.postgres.rates.keys import Rates
from headrace.engine.postgres.sql import sql
from headrace.engine.stored_text import checked_cursor, is_id
from headrace.model.insert_policy import EXPIRED
from headrace.model.times import kept_delay
from headrace.model.views import Due, Expired, LostJob

# Before every id.
_NO_ID = "00000000-0000-0000-0000-000000000000"
# Before every row of a table.
_NO_PLACE = (0, 0)


class Upkeep(Rates):
    """Due, expired, suspended, lost and old jobs. Each verb works in bounded steps."""

    async def promote_due(self, limit: int) -> Due:
        [row] = await self._common.fetch(sql.due, self.clock.offset, limit)
        return Due(row[0], row[1])

    async def expire(self, limit: int) -> Expired:
        [row] = await self._common.fetch(sql.expire, self.clock.offset, limit, EXPIRED)
        return Expired(tuple(row[0]), row[1])

    async def wake(self, ids: Sequence[str]) -> list[str]:
        asked = [each for each in dict.fromkeys(ids) if is_id(each)]
        if not asked:
            return []
        found = await self._common.fetch(sql.wake, self.clock.offset, asked)
        woken = {row[0] for row in found}
        return [each for each in asked if each in woken]

    async def suspended(self, *, after: str = "", limit: int = 1_000) -> list[str]:
        first = checked_cursor(after or None) or _NO_ID
        return [row[0] for row in await self._common.fetch(sql.suspended, first, limit)]

    async def take_lost(self, limit: int) -> list[LostJob]:
        found = await self._common.fetch(sql.lost, self.clock.offset, limit)
        return [rows.lost(row) for row in found]

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        offset = self.clock.offset
        removed = 0
        if older_than is not None or keep is not None:
            age = None if older_than is None else kept_delay(older_than)
            [row] = await self._common.fetch(sql.prune, offset, age, keep, limit)
            removed = row[0]
        if removed < limit:
            # The last of several steps: lanes, rates, workers and queues are looked through once.
            await self._forget_lanes(limit)
            await self._forget_rates(limit)
            await self._set_rate_clocks(limit)
            await self._forget_queues(limit)
            await self._common.fetch(sql.prune_workers, offset)
            await self._common.fetch(sql.mark_emptied_workers)
        return removed

    async def _forget_lanes(self, limit: int) -> None:
        """Forget all that are idle, a step at a time: other verbs come in between."""
        after, count = _NO_PLACE, limit
        while count == limit > 0:
            [(after, count)] = await self._common.fetch(sql.prune_lanes, after, limit)

    async def _forget_queues(self, limit: int) -> None:
        count = limit
        while count == limit > 0:
            [(count,)] = await self._common.fetch(sql.prune_queues, self.clock.offset, limit)
