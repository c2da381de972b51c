"""Jobs by filter and page, in steps that never keep the server busy for long."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime

import msgspec

from headrace.engine.redis.codec import finished_at, read_record, seen
from headrace.engine.redis.connection.connection import Part
from headrace.engine.redis.views import Viewing
from headrace.engine.stored_text import checked_cursor
from headrace.model.job import Job, JobFilter
from headrace.model.status import FINAL, STATES, Status
from headrace.model.views import JobCount, JobPage

_STRETCH = 1_000
# Where jobs are passed by the type of their error, most have none and their records are not read:
# so many times as many cost the server about the same, and a walk takes fewer trips.
_LIGHT = 3
# Jobs in the states asked for are taken all together if there are no more of them than this.
_FEW = 5_000
# Of `look`, so many jobs in other states count as one: they are neither sent nor taken apart,
# though the server reads each of them, too.
_PASSED = 2
_INDEXED = {Status.FAILED: 5, Status.TIMEOUT: 6, Status.CANCELLED: 7}
_LINES = {
    Status.SCHEDULED: "scheduled",
    Status.PENDING: "pending",
    Status.RUNNING: "running",
    Status.COMPLETED: "finished",
}
# Ids carry the time at which their maker's clock stood. Nobody's clock is wrong by more than this.
_SKEW_SECONDS = 86_400.0

Found = tuple[str, bytes]


class Stretch(msgspec.Struct):
    """Some jobs of an index by descending id, with their records; empty if they do not match."""

    found: list[Found]
    # How many jobs in other states lie between them.
    passed: int
    # The last id that was looked at; empty if none is left behind it.
    last: str


Source = Callable[[str, int], Awaitable[Stretch]]
"""Return at most so many jobs with an id below this one."""


class Walk:
    """Jobs of several sources by descending id in one merged order, from below `cursor` on.

    Afterwards, `cursor` is where to go on, or None if no job is left.
    """

    def __init__(
        self, sources: Sequence[Source], cursor: str, first: int, most: int, look: int | None
    ) -> None:
        self._sources = sources
        self._stretch = first
        self._most = most
        self._left = math.inf if look is None else look
        self.cursor: str | None = cursor

    async def __aiter__(self) -> AsyncIterator[Found]:
        while self.cursor is not None and self._left > 0:
            limit = math.ceil(self._left) if self._left < self._most else self._most
            steps = min(self._stretch, self._most, limit * _PASSED)
            self._stretch *= 4
            stretches = [await source(self.cursor, steps) for source in self._sources]
            # Below this id, one source may have jobs that it has not told yet.
            reached = max((each.last for each in stretches), default="")
            # `finished` has jobs that `ended` has, too.
            told = dict(each for stretch in stretches for each in stretch.found)
            found = sorted((each for each in told.items() if each[0] >= reached), reverse=True)
            if len(found) > limit:
                del found[limit:]
                reached = found[-1][0]
            self._left -= len(found) + sum(each.passed for each in stretches) / _PASSED
            for each in found:
                yield each
            self.cursor = reached or None


class Listing(Viewing):
    """See `headrace.engine.base.Viewing.list_jobs`."""

    async def list_jobs(
        self,
        filter: JobFilter,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        look: int | None = None,
    ) -> JobPage:
        walk = await self._walk(filter, checked_cursor(cursor), limit + 1, look)
        ids: list[str] = []
        owners: dict[str, bytes | None] = {}
        async for job_id, record in walk:
            if _matches(filter, record) and (
                filter.key is None or await self._has_key(filter.key, job_id, record, owners)
            ):
                if len(ids) == limit:
                    cursor = ids[-1]
                    break
                ids.append(job_id)
        else:
            cursor = walk.cursor
        # A job may have moved on since its record was read.
        jobs = [job for job in await self._shown(ids, brief) if _still_matches(filter, job)]
        return JobPage(jobs, cursor)

    async def count_jobs(self, filter: JobFilter, *, look: int = 10_000) -> JobCount:
        if filter == JobFilter(statuses=filter.statuses):
            counts = dict(zip(Status, await self.run("count"), strict=True))
            total = sum(counts[each] for each in set(filter.statuses or Status))
            return JobCount(min(total, look), total <= look)
        walk = await self._walk(filter, None, _STRETCH, look)
        count = 0
        owners: dict[str, bytes | None] = {}
        async for job_id, record in walk:
            if _matches(filter, record) and (
                filter.key is None or await self._has_key(filter.key, job_id, record, owners)
            ):
                count += 1
        return JobCount(count, walk.cursor is None)

    async def _shown(self, ids: Sequence[str], brief: bool) -> list[Job]:
        if brief and ids:
            return seen(await self.run("get_brief", *ids), brief=True)
        return await self.get(ids)

    async def _walk(
        self, filter: JobFilter, cursor: str | None, first: int, look: int | None
    ) -> Walk:
        newest, oldest = _id_bounds(filter, self.clock.offset)
        sources = await self._sources(filter, oldest)
        most = _STRETCH * _LIGHT if filter.error_types else _STRETCH
        start = newest if cursor is None else min(cursor, newest)
        return Walk(sources, start, first, most, look)

    async def _sources(self, filter: JobFilter, oldest: str) -> list[Source]:
        """The cheapest places to find all jobs that may match."""
        statuses = _possible(filter)
        if not statuses:
            return []
        wanted = _wanted(statuses, filter)

        def index(name: str, front: str = "") -> Source:
            size = len(front.encode())
            return lambda below, limit: self._scan(
                f"({front}{below}", f"[{front}{oldest}", limit, name, size, *wanted
            )

        def known(ids: list[bytes]) -> Source:
            names = sorted({job_id.decode() for job_id in ids}, reverse=True)
            return lambda below, limit: self._read(names, below, limit, wanted)

        ids = await self._known_ids(filter)
        if ids is not None:
            return [known(ids)]
        if filter.parent is not None:
            return [index("children", f"{filter.parent}\0")]
        if len(statuses) == len(Status):
            return [index("ids")]
        sources = [index("ended", str(_INDEXED[each])) for each in statuses & _INDEXED.keys()]
        lines = sorted(_LINES[each] for each in statuses - _INDEXED.keys())
        if lines:
            ids = await self.run("few_ids_by_state", _FEW, *lines)
            if ids is None:
                return [index("ids")]
            sources.append(known(ids))
        return sources

    async def _known_ids(self, filter: JobFilter) -> list[bytes] | None:
        """Return the ids of all that may match, and of some others, if few look-ups tell them."""
        if filter.key is not None and filter.tasks:
            fields = [f"{task}\0{filter.key}" for task in filter.tasks]
            answer = await self._link.call("HMGET", self.key("task_keys"), *fields)
            return [job_id for job_id in answer if job_id is not None]
        if filter.parent is None and filter.finished_after is not None:
            return await self._finished_since(_seconds(filter.finished_after))
        return None

    async def _has_key(
        self, key: str, job_id: str, packed: bytes, owners: dict[str, bytes | None]
    ) -> bool:
        """Whether the key that a job shows is its own: it may have gone to a newer one. `owners`
        are those that were looked up, by task.
        """
        task = read_record(packed).task
        if task not in owners:
            field = f"{task}\0{key}"
            owners[task] = await self._link.call("HGET", self.key("task_keys"), field)
        return owners[task] == job_id.encode()

    async def _finished_since(self, moment: float) -> list[bytes] | None:
        """`finished` is in the order of time, unless the server's clock was set back meanwhile."""
        ids: list[bytes] = []
        for end in range(0, _FEW, _STRETCH):
            span = (-end - _STRETCH, -end - 1)
            places = await self._link.call("LRANGE", self.key("finished"), *span)
            since = [place[8:] for place in places if finished_at(place) >= moment]
            if not since:
                return ids
            ids += since
        return None

    async def _read(
        self, names: list[str], below: str, limit: int, wanted: tuple[Part, ...]
    ) -> Stretch:
        left = [name for name in names if name < below]
        ids = left[:limit]
        found = _pairs(await self.run("scan_ids", len(ids), *ids, *wanted))
        return Stretch(found, 0, ids[-1] if len(left) > limit else "")

    async def _scan(self, *arguments: Part) -> Stretch:
        walked, last, *answer = await self.run("scan", *arguments)
        found = _pairs(answer)
        return Stretch(found, walked - len(found), last.decode())


def _pairs(answer: list[bytes]) -> list[Found]:
    return [(answer[n].decode(), answer[n + 1]) for n in range(0, len(answer), 2)]


def _possible(filter: JobFilter) -> set[Status]:
    """The statuses that jobs which match can have."""
    statuses = set(filter.statuses or Status)
    if filter.finished_after is not None or filter.finished_before is not None:
        statuses &= FINAL
    if filter.error_types:
        statuses -= {Status.COMPLETED, Status.CANCELLED}
    if filter.worker is not None:
        statuses -= {Status.SCHEDULED, Status.PENDING}
    return statuses


def _wanted(statuses: set[Status], filter: JobFilter) -> tuple[Part, ...]:
    """States and error types, as the scripts read them."""
    states = ""
    if len(statuses) < len(Status):
        states = "".join(str(int(state)) for each in statuses for state in STATES[each])
    return states, len(filter.error_types), *filter.error_types


def _matches(filter: JobFilter, packed: bytes) -> bool:
    """Whether a job in one of the states asked for matches otherwise, too."""
    if not packed:
        return False
    record = read_record(packed)
    return (
        _in(filter.queues, record.queue)
        and _in(filter.tasks, record.task)
        and filter.lane in (None, record.lane)
        and filter.key in (None, record.key)
        and filter.source in (None, record.source)
        and filter.parent in (None, record.parent)
        and filter.group in (None, record.group)
        and (filter.created_after is None or record.created >= _seconds(filter.created_after))
        and (filter.created_before is None or record.created < _seconds(filter.created_before))
        and filter.worker in (None, record.worker_name)
        and (filter.finished_after is None or record.completed >= _seconds(filter.finished_after))
        and (filter.finished_before is None or record.completed < _seconds(filter.finished_before))
    )


def _still_matches(filter: JobFilter, job: Job) -> bool:
    return (
        _in(filter.statuses, job.status)
        and _in(filter.error_types, job.error_type)
        and filter.worker in (None, job.worker)
    )


def _in(wanted: tuple[str, ...], value: str | None) -> bool:
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
