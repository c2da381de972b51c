"""What people see. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.model.job import Job, JobFilter
from headrace.model.limits.rate import RateView
from headrace.model.views import (
    JobCount,
    JobPage,
    LaneView,
    QueueView,
)
from headrace.model.worker import Worker


class Viewing(Protocol):
    """What people see. Read-only; never in the way of the verbs above."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """Return the jobs with these ids, in that order; unknown ones are left out."""

    async def get_part(self, ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        """Return some of these jobs, in any order, and the ids that are left: fewer each time.
        Arguments and results together have about `most_bytes`, or belong to one job. Short ones
        come in one round trip, as with `get`; long ones never delay other verbs.
        """

    async def list_jobs(
        self,
        filter: JobFilter,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        look: int | None = None,
    ) -> JobPage:
        """Return a page of jobs by descending id (newest first). `cursor` is the last id seen,
        whether or not that job still exists. Raises `InvalidInput` if it cannot be an id. Of
        several jobs that show a key (`insert_by_policy`) a filter by key finds the one that has it.

        `brief` jobs are read without arguments, result, meta and attempt log: these are empty.
        With `look`, the work is bounded by about so many jobs of the statuses asked for, however
        few match: a page may then be short, or empty, and its cursor is where to go on.
        """

    async def count_jobs(self, filter: JobFilter, *, look: int = 10_000) -> JobCount:
        """Count the jobs that match among the newest `look` of the statuses asked for (or of those
        with the key, or of the parent): never more work than that.
        """

    async def queues(self) -> list[QueueView]:
        """Return every queue that has unfinished jobs, is paused, or was used lately, by name: one
        that is empty and not paused stays until `prune`, more than a day after its last new job,
        forgets it. The oldest pending job is the one that has been due for longest, ready or
        waiting for its lane.
        """

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[LaneView]:
        """Return lanes with holders or waiting jobs: the most waiting first, then by queue and
        lane.

        Holders, also those that keep their place for a retry, are named by priority, then arrival.
        The age is that of the waiting job that has been due for longest; None if none waits.
        """

    async def rates(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[RateView]:
        """Return the keys that have a rate or a hold, by queue and lane; the lane "" is the queue.
        One that jobs have set is forgotten by `prune` when no unfinished job carries it any more
        and its time has passed.
        """

    async def workers(self) -> list[Worker]:
        """Return workers, alive ones first, then by name, then the newest first. Dead ones are
        shown until they are pruned.
        """
