"""What a worker does: register, claim, settle, write progress, listen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.model.durable.writes import Note, StoredEntry
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement
from headrace.model.views import (
    Exchange,
)
from headrace.model.worker import Renewal, WorkerInfo, WorkerStats

WorkSignal = Callable[[], None]
CancelSignal = Callable[[str], None]
# The id of a worker, and jobs that are leased to it.
JobsSignal = Callable[[str, Sequence[ClaimedJob]], None]


class LeaseKeeper(Protocol):
    """Renews one worker's lease from a thread of its own, on a connection of its own."""

    def renew(self, stats: WorkerStats) -> Renewal:
        """Extend the lease. Blocks; raises `EngineUnavailable` if the server is away.

        A lease that has lapsed is not extended, even if no sweep has found it yet: the worker is
        dead from then on. Whether a sweep came first must not decide what becomes of its jobs.
        """

    def close(self) -> None:
        """Close the connection."""


class Working(Protocol):
    """What a worker does."""

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        """Register a worker and start its lease.

        An earlier worker of the same name is dead from now on; its jobs are lost to it at once.
        """

    async def know(self, worker: WorkerInfo) -> None:
        """Replace the tasks that a living worker knows; nothing else about it changes."""

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        """Return the object that renews this worker's lease, for use on a thread of its own."""

    async def retire(self, worker_id: str) -> None:
        """Deregister a worker. Jobs that it still holds are lost to it at once; if it holds none,
        it is deleted.
        """

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
        free: int | None = None,
    ) -> Exchange:
        """Record outcomes, then lease up to `limit` ready jobs to `worker_id`: one round trip.

        No job is leased twice at once. Jobs are claimed and returned by priority, then arrival,
        over `queues` (None: all), leaving out paused ones. A worker that is unknown, or was
        declared dead (by `take_lost`, `renew`, `retire` or a successor of its name), is given
        nothing; a lapsed lease alone changes nothing. A finished job frees its place and the next
        of its lane may be claimed in the same call. Of several outcomes of one attempt the first
        counts, and the others are refused. One refused or impossible settlement does not disturb
        the others; a delay that is not a number counts as none, one without end as a very long one.
        A job whose cancel was requested is not tried again: Retry, Snoozed, Released and Reserved
        cancel it. A job that completes has the progress 100; the last message stays with it only if
        it was written with that, since any other is about a part of the work.

        A job whose rate, or a hold, does not let it start yet is not leased: it is parked (see
        `base`), and others of other lanes are leased as if it was not there. One that was parked
        and may start now is leased whether or not `promote_due` was called. Of the leased jobs at
        most `free` (None: any number) have a rate: a worker says how many could start at once.
        Those beyond stay ready. An outcome with `hold_lane` holds the job's lane, from this moment
        on, if it counts; a hold that lasts longer stays. A job without a lane holds nothing.

        The jobs that follow a settlement (`follow`) are stored in the same step as its outcome, as
        by `insert`: they exist if and only if the outcome counted, whatever else happens. One whose
        id or key exists already is not stored again, and that is no reason to refuse the outcome.
        A settlement whose followers cannot be stored at all is impossible. Outcomes without
        followers are recorded first. One that has to wait for a key in doubt makes no other
        settlement and no claim wait, but the reply to its call comes when all are recorded, or
        after 30 s `KeyInDoubt` is raised: a worker sends it in a call of its own. Without followers
        nothing of this costs anything.
        """

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        """Record progress, stage, message and entries of running jobs; return the refused ids.

        Progress is stored as given; callers check that it is from 0 to 100. NaN is ignored.
        """

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        """Return the jobs leased to this worker, to find those whose claim reply was lost."""

    async def now(self) -> float:
        """Return the engine's time, in seconds since the epoch. Times that another worker compares
        later are taken from it, because the clocks of machines differ.
        """

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        """Return the entries of a job, in the order in which they were first written."""

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        """Call `on_work` soon after jobs became ready, `on_cancel` with the id of a running job
        that should stop. Called on the event loop; may be spurious, may be lost while a connection
        heals (`listening` is False then). Returns a function that ends it.

        With `on_jobs` an engine may hand a job that comes in to a worker whose last exchange with a
        limit found nothing: leased as by `exchange`, which would have returned it, at most one
        until the next exchange that finds nothing; none after one whose limit is 0. That saves a
        round trip. No jobs for the worker "" means that some may have been lost on the way:
        `claimed_by` has them. Not all engines do this.
        """

    @property
    def listening(self) -> bool:
        """Whether signals arrive now."""
