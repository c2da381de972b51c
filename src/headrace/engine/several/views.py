"""What people see: the views of all stores that answer, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from headrace.engine.several.job_list import merged_page
from headrace.engine.several.store.member import Member
from headrace.engine.several.store.members import SeveralMembers
from headrace.engine.stored_text import checked_cursor
from headrace.model.job import Job, JobFilter
from headrace.model.limits.rate import RateView
from headrace.model.views import JobCount, JobPage, LaneView, QueueView
from headrace.model.worker import Worker

T = TypeVar("T")


class Viewing(SeveralMembers):
    """What people see. `missing` tells what these views lack."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """Return the jobs with these ids, in that order."""
        answers = await self.ask_homes(ids, lambda engine, share: engine.get(share))
        found = self._remembered(answers.items())
        self.all_answered(answers, (each for each in ids if each not in found))
        return [found[each] for each in ids if each in found]

    async def get_part(self, ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        """Return some of these jobs, and the ids that are left."""
        answers = await self.ask_homes(
            ids, lambda engine, share: engine.get_part(share, most_bytes)
        )
        found = self._remembered((member, jobs) for member, (jobs, _) in answers.items())
        rest = {each for _, left in answers.values() for each in left}
        known = rest | found.keys()
        self.all_answered(answers, (each for each in ids if each not in known))
        return list(found.values()), [each for each in ids if each in rest and each not in found]

    def _remembered(self, answers: Iterable[tuple[Member, Sequence[Job]]]) -> dict[str, Job]:
        found: dict[str, Job] = {}
        for member, jobs in answers:
            self.remember(member, [each for job in jobs for each in (job.id, job.parent)])
            found |= {job.id: job for job in jobs}
        return found

    async def list_jobs(
        self,
        filter: JobFilter,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        look: int | None = None,
    ) -> JobPage:
        """Return a page of the jobs of all stores by descending id."""
        checked_cursor(cursor)
        answers = await self.ask_all(
            lambda engine: engine.list_jobs(
                filter, cursor=cursor, limit=limit, brief=brief, look=look
            ),
            self._with_family(filter),
        )
        self._remembered((member, page.jobs) for member, page in answers.items())
        return merged_page(list(answers.values()), limit)

    async def count_jobs(self, filter: JobFilter, *, look: int = 10_000) -> JobCount:
        """Count the jobs that match among the newest of each store."""
        answers = await self.ask_all(
            lambda engine: engine.count_jobs(filter, look=look), self._with_family(filter)
        )
        counts = answers.values()
        return JobCount(
            min(sum(each.count for each in counts), look),
            not self.missing
            and all(each.complete for each in counts)
            and sum(each.count for each in counts) <= look,
        )

    def _with_family(self, filter: JobFilter) -> Sequence[Member]:
        """Return the stores to look at: children are in the store of their parent."""
        home = None if filter.parent is None else self.remembered(filter.parent)
        return self.members if home is None else [home]

    async def queues(self) -> list[QueueView]:
        """Return the queues of all stores, by name."""
        answers = await self.ask_all(lambda engine: engine.queues())
        return _merged(answers.values(), lambda each: each.name, _one_queue, lambda each: each.name)

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[LaneView]:
        """Return lanes of all stores, the most waiting first."""
        answers = await self.ask_all(
            lambda engine: engine.lanes(queue=queue, lane=lane, limit=limit)
        )
        return _merged(
            answers.values(),
            lambda each: (each.queue, each.lane),
            _one_lane,
            lambda each: (-each.waiting, each.queue.encode(), each.lane.encode()),
        )[:limit]

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[RateView]:
        """Return the keys of all stores that have a rate or a hold, by queue and lane."""
        answers = await self.ask_all(
            lambda engine: engine.rates(queue=queue, lane=lane, limit=limit)
        )
        return _merged(
            answers.values(),
            lambda each: (each.queue, each.lane),
            lambda one, other: one if one.rate is not None else other,
            lambda each: (each.queue.encode(), each.lane.encode()),
        )[:limit]

    async def workers(self) -> list[Worker]:
        """Return workers, one that is registered in several stores once."""
        answers = await self.ask_all(lambda engine: engine.workers())
        return _one_for_each(answers.values())


def _merged(
    lists: Iterable[Sequence[T]],
    name: Callable[[T], object],
    together: Callable[[T, T], T],
    order: Callable[[T], Any],
) -> list[T]:
    """Return the items of several lists as one in order, those of the same name `together`."""
    found: dict[object, T] = {}
    for items in lists:
        for each in items:
            key = name(each)
            found[key] = together(found[key], each) if key in found else each
    return sorted(found.values(), key=order)


def _one_for_each(lists: Iterable[Sequence[Worker]]) -> list[Worker]:
    """Return alive workers first, then by name, then the newest first. One that is registered
    anew in one store, because that was away, has another id there.
    """
    by_id: dict[str, Worker] = {}
    for workers in lists:
        for each in workers:
            by_id[each.id] = _living_one(by_id.get(each.id, each), each)
    alive: dict[tuple[str, str, int], Worker] = {}
    for each in by_id.values():
        if each.alive:
            who = (each.name, each.host, each.pid)
            alive[who] = _living_one(alive.get(who, each), each)
    ordered = [each for each in by_id.values() if not each.alive]
    ordered += alive.values()
    # Each sort keeps the order of the one before.
    ordered.sort(key=lambda each: each.started_at, reverse=True)
    return sorted(ordered, key=lambda each: (not each.alive, each.name.encode()))


def _living_one(one: Worker, other: Worker) -> Worker:
    return max(one, other, key=lambda each: (each.alive, each.heartbeat_at))


def _one_queue(one: QueueView, other: QueueView) -> QueueView:
    reserved = dict(one.reserved)
    for task, count in other.reserved.items():
        reserved[task] = reserved.get(task, 0) + count
    return msgspec.structs.replace(
        one,
        paused=one.paused or other.paused,
        scheduled=one.scheduled + other.scheduled,
        waiting=one.waiting + other.waiting,
        ready=one.ready + other.ready,
        running=one.running + other.running,
        oldest_age=_older(one.oldest_age, other.oldest_age),
        reserved=reserved,
    )


def _one_lane(one: LaneView, other: LaneView) -> LaneView:
    return msgspec.structs.replace(
        one,
        width=max(one.width, other.width),
        used=one.used + other.used,
        waiting=one.waiting + other.waiting,
        holders=one.holders + other.holders,
        oldest_age=_older(one.oldest_age, other.oldest_age),
    )


def _older(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)
