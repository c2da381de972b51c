"""The verbs of an App for circuit breakers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.admin.records import RecordVerbs
from headrace.errors import InvalidInput
from headrace.model.names import check_name, check_text

if TYPE_CHECKING:
    from headrace.model.limits.breaker import BreakerView

REASON_LIMIT = 1_000


class BreakerVerbs(RecordVerbs):
    """Which breakers are open; open and close them by hand."""

    async def breakers(
        self, *, queue: str | None = None, lane: str | None = None
    ) -> Sequence[BreakerView]:
        """Return the circuit breakers that are open, by queue and lane."""
        from headrace.breakers.store import open_breakers  # noqa: PLC0415 - many have none

        await self.open()
        found = await open_breakers(self._engine)
        return [
            each.view
            for key, each in sorted(found.items())
            if queue in (None, key[0]) and lane in (None, key[1])
        ]

    async def open_breaker(
        self,
        queue: str,
        lane: str,
        *,
        pause: float | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> BreakerView:
        """Start nothing more of a lane for `pause` seconds, and then try one job; as long as its
        breaker says if it is not given. `by` is who people see.

        Raises `InvalidInput` if no task is known here whose lane has a breaker and this name.
        """
        from headrace.breakers import by_hand  # noqa: PLC0415

        key = check_name("queue", queue), check_text("lane", lane)
        if pause is not None:
            by_hand.check_pause(pause)
        if reason is not None and (len(reason) > REASON_LIMIT or not reason.isprintable()):
            raise InvalidInput(
                f"reason must be one line of at most {REASON_LIMIT:,} characters, got "
                f"{reason[:60]!r}"
            )
        await self.open()
        lanes = [task.policy.lane for task in self.tasks.values() if task.policy.lane is not None]
        declared = by_hand.breaker_for(lanes, lane)
        if declared is not None and pause is None:
            pause = declared.pause
        known = declared is not None or await self.breakers(queue=queue, lane=lane)
        opened = None
        if known:
            opened = await by_hand.open_by_hand(self._engine, key, pause, by=by, reason=reason)
        if opened is None:
            raise InvalidInput(
                f"no task that is known here has a breaker for lane {lane!r}; name the tasks with "
                "--app, give the task a breaker=, or pause the queue: "
                f"headrace queues pause {queue}"
            )
        return opened

    async def close_breaker(self, queue: str, lane: str) -> bool:
        """Start the jobs of a lane again, and forget its failures; return False if its breaker is
        not open.
        """
        from headrace.breakers.by_hand import close_by_hand  # noqa: PLC0415

        key = check_name("queue", queue), check_text("lane", lane)
        await self.open()
        return await close_by_hand(self._engine, key)
