"""What people see."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace.engine.parts import SHORT_BYTES
from headrace.engine.postgres import rows
from headrace.engine.postgres.connection.connection import Rows
from headrace.engine.postgres.connection.store import Store
from headrace.engine.postgres.sql import sql
from headrace.engine.text import checked_cursor, is_id
from headrace.model.job import Job, JobFilter
from headrace.model.status import STATES, State
from headrace.model.times import in_utc
from headrace.model.views import JobPage, LaneView, QueueView
from headrace.model.worker import Worker

_UNSUCCESSFUL = {State.FAILED, State.TIMEOUT, State.CANCELLED}


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
        self, filter: JobFilter, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        asked = {state for status in filter.statuses for state in STATES[status]}
        unfinished = not asked or any(not state.status.final for state in asked)
        unsuccessful = not asked or bool(asked & _UNSUCCESSFUL)
        completed = not asked or State.COMPLETED in asked
        conditions = (
            checked_cursor(cursor),
            sorted(asked) or None,
            filter.queues or None,
            filter.tasks or None,
            filter.lane,
            filter.source,
            _in_utc(filter.created_after),
            _in_utc(filter.created_before),
            filter.key,
            limit + 1,
        )
        if filter.parent is None and filter.group is None:
            found = await self._views.fetch(
                sql.list, unfinished, unsuccessful, completed, *conditions
            )
        elif filter.parent is not None and not is_id(filter.parent):
            found = []
        else:
            found = await self._views.fetch(
                sql.list_children,
                filter.parent,
                filter.group,
                unfinished,
                unsuccessful or completed,
                *conditions,
            )
        jobs = [rows.job(row) for row in found[:limit]]
        return JobPage(jobs, jobs[-1].id if len(found) > limit and jobs else None)

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


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else in_utc(moment)
