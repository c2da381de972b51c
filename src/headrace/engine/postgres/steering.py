"""What people do to jobs and queues."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.postgres.sql import query
from headrace.engine.postgres.store import Store
from headrace.engine.text import is_id, storable

_CANCEL = query("cancel")
_RERUN = query("rerun")
_PAUSE = query("pause")


class Steering(Store):
    """Cancel, run again, pause."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        """Cancel jobs: True for one that is cancelled now, False for one that was asked to stop."""
        asked = [each for each in dict.fromkeys(ids) if is_id(each)]
        if not asked:
            return {}
        found = await self._common.fetch(_CANCEL, self.clock.offset, asked, storable(reason))
        return {row[0]: row[1] for row in found}

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        """Run finished jobs again, and scheduled ones now. Answers those that were moved."""
        asked = [each for each in dict.fromkeys(ids) if is_id(each)]
        if not asked:
            return []
        found = await self._common.fetch(_RERUN, self.clock.offset, asked)
        moved = {row[0] for row in found}
        return [each for each in asked if each in moved]

    async def pause(self, queue: str, paused: bool) -> None:
        """Stop or resume handing out a queue's jobs."""
        await self._common.fetch(_PAUSE, queue, paused)
