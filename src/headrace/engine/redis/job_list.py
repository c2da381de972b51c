"""Jobs by filter and page, in steps that never keep the server busy for long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime

from headrace.engine.redis.codec import StoredJob, read_record
from headrace.engine.redis.views import Viewing
from headrace.engine.text import checked_cursor
from headrace.model.job import JobFilter
from headrace.model.status import STATES, State, Status
from headrace.model.views import JobPage

_STRETCH = 1_000
# Jobs in the states asked for are taken all together if there are no more of them than this.
_FEW = 5_000
_INDEXED = {Status.FAILED: 5, Status.TIMEOUT: 6, Status.CANCELLED: 7}
_LINES = {
    Status.SCHEDULED: "scheduled",
    Status.PENDING: "pending",
    Status.RUNNING: "running",
    **dict.fromkeys((Status.COMPLETED, *_INDEXED), "finished"),
}
# Ids carry the time at which their maker's clock stood. Nobody's clock is wrong by more than this.
_SKEW_SECONDS = 86_400.0

Found = tuple[str, StoredJob]


class Listing(Viewing):
    """See `headrace.engine.base.Viewing.list_jobs`."""

    async def list_jobs(
        self, filter: JobFilter, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        ids: list[str] = []
        async for job_id, record in self._candidates(filter, checked_cursor(cursor)):
            if _matches(filter, record):
                ids.append(job_id)
                if len(ids) > limit:
                    break
        more = len(ids) > limit
        # A job may have moved on since its record was read.
        jobs = [job for job in await self.get(ids[:limit]) if _in(filter.statuses, job.status)]
        return JobPage(jobs, ids[limit - 1] if more else None)

    async def _candidates(self, filter: JobFilter, cursor: str | None) -> AsyncIterator[Found]:
        """Jobs that may match, by descending id, from the cheapest place to find them."""
        ids: list[bytes] | None = None
        if filter.key is not None and filter.tasks:
            fields = [f"{task}\0{filter.key}" for task in filter.tasks]
            answer = await self._link.call("HMGET", self.key("task_keys"), *fields)
            ids = [job_id for job_id in answer if job_id is not None]
        elif (
            filter.parent is None
            and filter.statuses
            and not set(filter.statuses) <= _INDEXED.keys()
        ):
            words = {_LINES[status] for status in filter.statuses}
            ids = await self.run("collect", _FEW, *sorted(words))
        walk = self._walk(filter, cursor) if ids is None else self._read(ids, cursor)
        async for found in walk:
            yield found

    async def _read(self, ids: list[bytes], cursor: str | None) -> AsyncIterator[Found]:
        names = sorted({job_id.decode() for job_id in ids}, reverse=True)
        names = [name for name in names if cursor is None or name < cursor]
        for first in range(0, len(names), _STRETCH):
            stretch = names[first : first + _STRETCH]
            records = await self._link.call("HMGET", self.key("jobs"), *stretch)
            for name, record in zip(stretch, records, strict=True):
                if record is not None:
                    yield name, read_record(record)

    async def _walk(self, filter: JobFilter, cursor: str | None) -> AsyncIterator[Found]:
        """Follow an index by id: of all jobs, of a parent's children, or those of the final states
        asked for, in one merged order.
        """
        index, fronts = "ids", [""]
        if filter.parent is not None:
            index, fronts = "children", [f"{filter.parent}\0"]
        elif filter.statuses and set(filter.statuses) <= _INDEXED.keys():
            index = "ended"
            fronts = [str(_INDEXED[status]) for status in dict.fromkeys(filter.statuses)]
        newest, oldest = _id_bounds(filter, self.clock.offset)
        if cursor is None or newest < cursor:
            cursor = newest
        while True:
            found: dict[str, StoredJob] = {}
            reached = ""
            for front in fronts:
                span = (f"({front}{cursor}", f"[{front}{oldest}", _STRETCH)
                answer = await self.run("scan", *span, index, len(front.encode()))
                found.update(_pairs(answer))
                if len(answer) == 2 * _STRETCH:
                    # Below this id another state's index may have jobs that this one hides.
                    reached = max(reached, answer[-2].decode())
            for job_id in sorted(found, reverse=True):
                if job_id >= reached:
                    yield job_id, found[job_id]
            if not reached:
                return
            cursor = reached


def _pairs(answer: list[bytes]) -> Iterator[Found]:
    for job_id, record in zip(answer[::2], answer[1::2], strict=True):
        if record is not None:
            yield job_id.decode(), read_record(record)


def _matches(filter: JobFilter, record: StoredJob) -> bool:
    state = State.READY if record.state == State.WAITING else State(record.state)
    return (
        (not filter.statuses or any(state in STATES[status] for status in filter.statuses))
        and _in(filter.queues, record.queue)
        and _in(filter.tasks, record.task)
        and filter.lane in (None, record.lane)
        and filter.key in (None, record.key)
        and filter.source in (None, record.source)
        and filter.parent in (None, record.parent)
        and filter.group in (None, record.group)
        and (filter.created_after is None or record.created >= _seconds(filter.created_after))
        and (filter.created_before is None or record.created < _seconds(filter.created_before))
    )


def _in(wanted: tuple[str, ...], value: str) -> bool:
    return not wanted or value in wanted


def _seconds(moment: datetime) -> float:
    return moment.timestamp()


def _id_bounds(filter: JobFilter, offset: float) -> tuple[str, str]:
    """Ids above and below everything that the filter's times allow."""
    newest, oldest = "\x7f", ""
    if filter.created_before is not None:
        newest = _id_at(_seconds(filter.created_before) + _SKEW_SECONDS)
    if filter.created_after is not None:
        oldest = _id_at(_seconds(filter.created_after) - offset - _SKEW_SECONDS)
    return newest, oldest


def _id_at(seconds: float) -> str:
    """How a UUIDv7 made at this time begins."""
    stamp = f"{max(0, int(seconds * 1000)):012x}"
    return f"{stamp[:8]}-{stamp[8:]}"
