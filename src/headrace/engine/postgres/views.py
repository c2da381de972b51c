"""What people see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from headrace.engine.bounded_reads import SHORT_BYTES
from headrace.engine.postgres import rows
from headrace.engine.postgres.connection.connection import Rows
from headrace.engine.postgres.connection.store import Store
from headrace.engine.postgres.sql import sql
from headrace.engine.stored_text import checked_cursor, is_id
from headrace.model.job import Job, JobFilter
from headrace.model.status import STATES, State
from headrace.model.times import in_utc
from headrace.model.views import JobCount, JobPage, LaneView, QueueView
from headrace.model.worker import Worker

_UNSUCCESSFUL = {State.FAILED, State.TIMEOUT, State.CANCELLED}
# How many jobs are looked at for a page in the first step, where there is no bound; and in the
# last, if they are those of a parent or with a key.
LOOK, MOST_LOOK = 400, 1_000_000


class Viewing(Store):
    """Read-only. What may read much has a connection of its own."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        asked = [each for each in ids if is_id(each)]
        if not asked:
            return []
        found = {job.id: job for job in map(rows.job, await self._common.fetch(sql.get, asked))}
        return [found[each] for each in asked if each in found]

    async def get_part(self, ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        asked = sorted({each for each in ids if is_id(each)})
        if not asked:
            return [], []
        short = await self._common.fetch(sql.get_part, asked, min(SHORT_BYTES, most_bytes), False)
        jobs, rest = _part(short, asked)
        if rest:
            more, rest = _part(await self._views.fetch(sql.get_part, rest, most_bytes, True), rest)
            # If nothing was found now, then there is nothing.
            return [*jobs, *more], rest if more else []
        return jobs, []

    async def list_jobs(
        self,
        filter: JobFilter,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        look: int | None = None,
    ) -> JobPage:
        cursor = checked_cursor(cursor)
        conditions = _conditions(filter)
        jobs: list[Job] = []
        bound: int | None = look or max(LOOK, limit)
        while conditions is not None:
            found = await self._views.fetch(
                sql.list, *conditions(cursor, limit + 1 - len(jobs), bound), brief
            )
            cursor = None
            for row in found:
                if row["reached"] is not None:
                    cursor = str(row["reached"])
                    break
                jobs.append(rows.job(row))
            if len(jobs) > limit:
                return JobPage(jobs[:limit], jobs[limit - 1].id if limit else None)
            if look is not None or cursor is None or bound is None:
                break
            # Whoever set no bound wants a full page: in long steps, if few match.
            known = filter.key is not None or filter.parent is not None
            longer = min(bound * 10, MOST_LOOK)
            bound = longer if known or bound <= LOOK else None
        return JobPage(jobs, cursor)

    async def count_jobs(self, filter: JobFilter, *, look: int = 10_000) -> JobCount:
        conditions = _conditions(filter)
        if conditions is None:
            return JobCount(0, True)
        [row] = await self._views.fetch(sql.count, *conditions(None, None, look))
        return JobCount(row["amount"], row["complete"])

    async def queues(self) -> list[QueueView]:
        return [rows.queue(row) for row in await self._views.fetch(sql.queues, self.clock.offset)]

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[LaneView]:
        found = await self._views.fetch(sql.lanes, self.clock.offset, queue, lane, limit)
        return [rows.lane(row) for row in found]

    async def workers(self) -> list[Worker]:
        return [
            rows.worker(row) for row in await self._common.fetch(sql.workers, self.clock.offset)
        ]


def _part(found: Rows, asked: list[str]) -> tuple[list[Job], list[str]]:
    """Return the jobs of rows of `get_part`, and which ids, in ascending order, come after them."""
    jobs = sorted(map(rows.job, found), key=lambda job: job.id)
    if not found:
        return [], asked
    total = found[0]["total"]
    if max(row["reached"] for row in found) == total:
        return jobs, []
    return jobs, [each for each in asked if each > jobs[-1].id]


def _conditions(filter: JobFilter) -> Callable[..., tuple[object, ...]] | None:
    """Return what makes the arguments of `list_jobs`; None if nothing can match."""
    if filter.parent is not None and not is_id(filter.parent):
        return None
    asked = {state for status in filter.statuses for state in STATES[status]}
    ended = filter.finished_after is not None or filter.finished_before is not None

    def conditions(cursor: str | None, limit: int | None, look: int | None) -> tuple[object, ...]:
        return (
            not ended and (not asked or any(not state.status.final for state in asked)),
            not asked or bool(asked & _UNSUCCESSFUL),
            not asked or State.COMPLETED in asked,
            cursor,
            sorted(asked) or None,
            filter.queues or None,
            filter.tasks or None,
            filter.lane,
            filter.source,
            _in_utc(filter.created_after),
            _in_utc(filter.created_before),
            filter.error_types or None,
            filter.worker,
            _in_utc(filter.finished_after),
            _in_utc(filter.finished_before),
            filter.key,
            filter.parent,
            filter.group,
            limit,
            look,
        )

    return conditions


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else in_utc(moment)
