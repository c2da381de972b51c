"""Recording outcomes together with the jobs that follow from them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.engine.follower_steps import followers
from headrace.engine.postgres.columns import insert_columns, once, settlement_columns
from headrace.engine.postgres.connection.connection import Link
from headrace.engine.postgres.keys_in_doubt import KeysInDoubt, keys_of
from headrace.engine.postgres.rates.keys import hold_column
from headrace.engine.postgres.sql import sql
from headrace.errors import InvalidInput, KeyInDoubt
from headrace.model.job import NewJob
from headrace.model.outcome import Settlement


class Following(KeysInDoubt):
    """Outcomes and followers in one transaction. No exchange waits for it."""

    async def _follow(
        self, settlements: Sequence[Settlement]
    ) -> tuple[list[str], list[Settlement]]:
        """Record what can be recorded now, each job once. Return the ids that were refused, and the
        settlements whose followers have keys in doubt.
        """
        try:
            return await self._follow_together(settlements, wait=False), []
        except (InvalidInput, KeyInDoubt) as error:
            if len(settlements) == 1:
                [one] = settlements
                return ([], [one]) if isinstance(error, KeyInDoubt) else ([one.job_id], [])
        # Nothing has happened. Half of it finds those who are to blame, and the others pass.
        middle = len(settlements) // 2
        refused, doubtful = await self._follow(settlements[:middle])
        more_refused, more_doubtful = await self._follow(settlements[middle:])
        return refused + more_refused, doubtful + more_doubtful

    async def _follow_when_known(self, doubtful: Sequence[Settlement]) -> list[str]:
        """Record settlements as soon as their keys are known; return the ids that were refused."""
        ended = await asyncio.gather(
            *(self._follow_together([each], wait=True) for each in doubtful),
            return_exceptions=True,
        )
        refused: list[str] = []
        for each, end in zip(doubtful, ended, strict=True):
            if isinstance(end, InvalidInput):
                refused.append(each.job_id)
            elif isinstance(end, BaseException):
                raise end
            else:
                refused += end
        return refused

    async def _follow_together(self, settlements: Sequence[Settlement], *, wait: bool) -> list[str]:
        """Record settlements in one transaction; those that are refused are left out of it."""
        refused: list[str] = []
        left = list(settlements)
        while left:
            jobs = once(followers(left))

            async def store(
                link: Link, left: list[Settlement] = left, jobs: Sequence[NewJob] = jobs
            ) -> list[str]:
                due = [job for job in jobs if job.lane is not None and not job.delay > 0]
                [(stale,)] = await self._fetch_in_queues(
                    link,
                    {job.queue for job in jobs},
                    sql.settle_and_insert,
                    self.clock.offset,
                    *settlement_columns(left),
                    [job.queue for job in due],
                    [job.lane for job in due],
                    [job.width for job in due],
                    hold_column(left),
                    *insert_columns(jobs),
                )
                return [str(each) for each in stale or ()]

            link = self._doubts if keys_of(jobs) else self._common
            stale = await self._store_by(link, jobs, store, wait=wait)
            if not stale:
                break
            refused += stale
            left = [each for each in left if each.job_id not in stale]
        self._claimed_lanes.forget(settlements)
        return refused
