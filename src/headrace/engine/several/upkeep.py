"""What keeps jobs moving, in each store by itself: one that is away holds up none of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.engine.several.store.members import SeveralMembers
from headrace.model.views import Due, Expired, LostJob


class Upkeep(SeveralMembers):
    """Verbs that workers call in the background."""

    async def promote_due(self, limit: int) -> Due:
        """Make scheduled jobs pending, up to `limit` in each store."""
        answers = (await self.ask_all(lambda engine: engine.promote_due(limit))).values()
        return Due(sum(each.moved for each in answers), soonest(each.next_in for each in answers))

    async def expire(self, limit: int) -> Expired:
        """Cancel jobs that have not started in time, up to `limit` in each store."""
        answers = await self.ask_all(lambda engine: engine.expire(limit))
        for member, each in answers.items():
            self.remember(member, each.ids)
        ids = tuple(job_id for each in answers.values() for job_id in each.ids)
        return Expired(ids, soonest(each.next_in for each in answers.values()))

    async def wake(self, ids: Sequence[str]) -> list[str]:
        """Make suspended jobs due whose wait is over. Those in a store that is away are woken by
        its upkeep later.
        """
        living = {
            member: share for member, share in self.shares(ids).items() if member.away is None
        }
        answers = await self.ask_shares(living, lambda engine, share: engine.wake(share))
        found = {each for answer in answers.values() for each in answer}
        return [each for each in ids if each in found]

    async def suspended(self, *, after: str = "", limit: int = 1_000) -> list[str]:
        """Return ids of suspended jobs of all stores, in the order of ids."""
        answers = await self.ask_all(lambda engine: engine.suspended(after=after, limit=limit))
        for member, ids in answers.items():
            self.remember(member, ids)
        return sorted(each for ids in answers.values() for each in ids)[:limit]

    async def take_lost(self, limit: int) -> list[LostJob]:
        """Return jobs that dead workers hold, up to `limit` together."""
        answers = await self.ask_all(lambda engine: engine.take_lost(limit))
        found: list[LostJob] = []
        for member, jobs in answers.items():
            self.remember(member, [each.job.id for each in jobs])
            self.remember(member, [each.job.parent for each in jobs])
            found += jobs
        return found[:limit]

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        """Delete old history, up to `limit` jobs in each store. `keep` is for each of them, too."""
        answers = await self.ask_all(
            lambda engine: engine.prune(older_than=older_than, keep=keep, limit=limit)
        )
        return sum(answers.values())


def soonest(seconds: Iterable[float | None]) -> float | None:
    """Return the shortest of these times, if any is known."""
    return min((each for each in seconds if each is not None), default=None)
