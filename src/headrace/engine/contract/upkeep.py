"""What keeps jobs moving: due, woken, lost and old jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.model.views import (
    Due,
    Expired,
    LostJob,
)


class Upkeep(Protocol):
    """Verbs that workers call in the background. Any number of processes may do so at once."""

    async def promote_due(self, limit: int) -> Due:
        """Make up to `limit` scheduled jobs pending whose time has come."""

    async def expire(self, limit: int) -> Expired:
        """Cancel up to `limit` jobs that should have started by now and have not: scheduled,
        waiting and ready ones in attempt 0, with the reason `EXPIRED`. The earliest first.

        `exchange` leases no job whose time to start is over, whether or not this was called.
        One that has started once does not expire any more, whatever becomes of it.
        """

    async def wake(self, ids: Sequence[str]) -> list[str]:
        """Of these jobs, make due every suspended one for which something it awaits has happened.
        Returns the ids moved. Others are left alone, so it may be called at any time; a caller
        that changes what a job may await calls it afterwards.
        """

    async def suspended(self, *, after: str = "", limit: int = 1_000) -> list[str]:
        """Return ids of suspended jobs, in the order of ids, after one of them, so that upkeep can
        `wake` jobs whose waker crashed.
        """

    async def take_lost(self, limit: int) -> list[LostJob]:
        """Declare workers with a lapsed lease dead and return up to `limit` jobs that dead workers
        hold. Settle them through `exchange`: their tokens are still good, so if a dead worker
        finishes one first, or two sweeps race, one outcome counts.
        """

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        """Delete up to `limit` finished jobs, oldest first: those that finished more than
        `older_than` seconds ago, and those beyond the newest `keep`. Their keys and entries go
        with them; a key that has gone to a newer job stays. One
        whose parent stays, because that has not finished, is not old enough, or is
        spared itself, is spared: its parent may yet ask for its result, also if it is run again.
        For each that kept artifacts (entries of kind "artifact") a record of kind
        "pruned-artifacts" with its id as the key is written in the same step, so that upkeep
        removes the files. A call that deletes fewer than `limit` also clears all idle lanes,
        workers that were declared dead more than a day ago and hold nothing, and queues that are
        empty, not paused, and have had no new job for more than a day (up to an hour later).
        """
