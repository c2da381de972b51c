"""The engine contract: what every place where jobs live promises, verb by verb.

Rules that hold for all of them:

* Time is the engine's own (the server's, or this machine's for SQLite) plus `clock.offset`.
* A write of a running attempt carries its token. It is applied only while the job is running
  under that token; otherwise it is refused and changes nothing.
* Every verb is atomic: all of it happens, or it raises and nothing has happened. Where a lost
  connection leaves that open, `EngineUnavailable` is raised and repeating the call is safe.
* A lane belongs to its queue. A job holds a place in its lane while it is ready, running, or
  waiting for a retry with `hold`. Places never exceed the lane's width, except after the width
  was made smaller: then nothing is admitted until enough places are free.
* A place is given by priority (higher first), then by the order of arrival. A job that comes back
  (`yield` retry, release) has its old place in that order.
* A new job sets the width of its lane, at the moment when it is due: when it is inserted, or later
  if it was scheduled; of several in one call the last. A job that comes back (retry, snooze,
  release, rerun) leaves the width as it is, unless nobody is in the lane: then its own counts.
* A ready job that a worker has settled with `Reserved` is offered only to workers that know its
  task, until it is claimed or put back. It keeps its place by priority and arrival; jobs of the
  same task and queue that come next in line may be reserved with it. So a backlog of jobs that a
  worker does not know is never in the way of those that it knows.
* A job that is not running has no worker and no start; one that ended while it ran keeps those of
  that attempt. A worker is told by its name.
* Times are kept to the millisecond at least. `run_at` is when the job is due: of a retry or a
  snooze that is its new time; a release leaves it alone; a rerun is due at once.
* No time is kept that cannot be read back: one before 1970 is kept as 1970, one after 9998 as the
  end of that year, a delay of more than 100 years as 100 years; what is not a number is due at
  once. One that was stored all the same is shown as the nearest of these.
* A cancelled job has the reason in `error` and no `error_type`. If somebody asked it to stop, the
  reason is theirs, of several the first's, whatever the attempt says.
* What the outside world says (errors, reasons, messages, names of stages, workers and hosts) may
  contain any character. Those that a store cannot keep are replaced by U+FFFD: NUL characters and
  lone surrogates. No outcome and no note is refused for them.
* Text is ordered by its UTF-8 bytes.
* A job that was snoozed with `awaits` is suspended while it is scheduled. What it awaits is
  forgotten when it leaves that state, and shown until then. `hold` counts as for a retry.
* `audit` is empty at any moment.
* A store has two numbers: the version of its schema, and `min_program`, the lowest version that a
  program must know to use it. A program that knows `min_program` uses the store, also one that is
  started after a newer program has migrated it, with all verbs. Only a migration that states so
  raises `min_program`; from then on older programs are refused when they open the store. A store
  that lacks nothing is opened without any change of its schema, and without the right to make one.

`tests/engine/` is the conformance suite; an engine is right when it passes it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headrace.clock import Clock
from headrace.model.durable.writes import Note, StoredEntry
from headrace.model.job import ClaimedJob, Inserted, Job, JobFilter, LostJob, NewJob
from headrace.model.outcome import Settlement
from headrace.model.views import (
    Delivery,
    Due,
    EngineReport,
    Exchange,
    Finding,
    JobPage,
    LaneView,
    QueueView,
    Record,
    RecordChange,
    SchemaState,
)
from headrace.model.worker import Renewal, Worker, WorkerInfo, WorkerStats

WorkSignal = Callable[[], None]
CancelSignal = Callable[[str], None]
# The id of a worker, and jobs that are leased to it.
JobsSignal = Callable[[str, Sequence[ClaimedJob]], None]


class Lifecycle(Protocol):
    """Opening, closing and looking after the store."""

    name: str
    """Its name: sqlite, postgres or redis."""

    clock: Clock

    async def open(self) -> None:
        """Connect, and migrate unless that was forbidden; safe when several processes do it at
        once. Raises `SchemaTooNew` if the store is for newer programs, `MigrationNeeded` if
        something is missing and it was forbidden, `EngineUnavailable` if the server is not there.
        """

    async def schema(self) -> SchemaState:
        """Return what the schema of the store is, and what `migrate` would do. Changes nothing, and
        may be called before `open`; `close` afterwards.
        """

    async def migrate(self) -> None:
        """Bring the schema up to date, as `open` does, also if that is forbidden to `open`. May be
        called before `open`; `close` afterwards.
        """

    async def close(self) -> None:
        """Finish what was accepted and close every connection. Closing twice is fine."""

    async def report(self) -> EngineReport:
        """Tell version, durability settings and clock skew, each with a remedy if it is wrong."""

    async def audit(self) -> list[Finding]:
        """Check the invariants over the whole store. Empty means all is well.

        What belongs together is looked at in one moment, so jobs may move meanwhile. A large store
        is gone through in pieces: nobody else waits for all of it.
        """


class Producing(Protocol):
    """Taking jobs in."""

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        """Store jobs durably, in this order; the answer is in the same order.

        A job whose id exists, finished or not, is not stored again: the answer is that id, not
        created. So a call can be repeated. One whose (task, key) exists, in the store or earlier
        in the call, is not stored either: the answer names the job that has it. Of several with
        one id in a call the first counts, and the others are answered with what it was answered.
        The caller bounds the size of a call.

        `record` is written in the same step. If its version does not hold, `RecordConflict` is
        raised and no job is stored. A call with a version that is repeated may meet its own change.

        A key may be in doubt: a transaction that is still open has stored a job with it (see
        `insert_within`). Then nobody but this call waits for the end of that, up to 30 s. After
        that, or at once without `wait`, it raises `KeyInDoubt`, and nothing is stored.
        """


class TransactionalProducing(Protocol):
    """Taking jobs in as part of the caller's own transaction (PostgreSQL)."""

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in the open transaction of an asyncpg or psycopg connection or a SQLAlchemy
        session. They exist if and only if it commits. No lane is locked, so nobody waits.
        """


class LeaseKeeper(Protocol):
    """Renews one worker's lease from a thread of its own, on a connection of its own."""

    def renew(self, stats: WorkerStats) -> Renewal:
        """Extend the lease. Blocks; raises `EngineUnavailable` if the server is away.

        A lease that has lapsed is not extended, even if nobody has noticed yet: the worker is dead
        from then on. A worker that was silent for so long has broken its word, and whether a sweep
        came first must not decide what becomes of its jobs.
        """

    def close(self) -> None:
        """Give the connection back."""


class Working(Protocol):
    """What a worker does."""

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        """Introduce a worker and start its lease.

        An earlier worker of the same name is dead from now on; its jobs are lost to it at once.
        """

    async def know(self, worker: WorkerInfo) -> None:
        """A worker, if alive, knows other tasks than it said; nothing else about it changes."""

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        """Make the object that renews this worker's lease. Call it on the worker's own thread."""

    async def retire(self, worker_id: str) -> None:
        """Take leave. Jobs that the worker still holds are lost to it at once; one that holds none
        is forgotten.
        """

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
    ) -> Exchange:
        """Record outcomes, then lease up to `limit` ready jobs to `worker_id`: one round trip.

        No job is leased twice at once. Jobs are taken and answered by priority, then arrival, over
        `queues` (None: all), leaving out paused ones. A worker that is unknown, or was declared
        dead (by `lost`, `renew`, `retire` or a successor of its name), is given nothing; a lapsed
        lease alone changes nothing. A finished job frees its place and the next of its lane may be
        claimed in the same call. Of several outcomes of one attempt the first counts, and the
        others are refused. One refused or impossible settlement does not disturb the others;
        a delay that is not a number counts as none, one without end as a very long one. A job
        whose cancel was requested is not tried again: Retry, Snoozed, Released and Reserved cancel
        it.
        """

    async def note(self, notes: Sequence[Note]) -> tuple[str, ...]:
        """Record progress, stage, message and entries of running jobs; answer the refused ids.

        Progress is kept as it is told: whoever tells it makes sure that it is from 0 to 100. What
        is not a number is not told.
        """

    async def held(self, worker_id: str) -> list[ClaimedJob]:
        """The jobs that are leased to this worker, for making sure that none was forgotten."""

    async def now(self) -> float:
        """The engine's time, in seconds since the epoch. What is kept to be compared by another
        worker later is counted from it: clocks of machines differ.
        """

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        """What was kept with a job by `note`, in the order it was first written."""

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        """Call `on_work` soon after jobs became ready, `on_cancel` with the id of a running job
        that should stop. Called on the event loop; may be spurious, may be lost while a
        connection heals (`listening` is False then). Answers a function that ends it.

        With `on_jobs` an engine may hand a job that comes in to a worker whose last exchange with
        a limit found nothing: leased as by `exchange`, which would have answered it, at most one
        until the next exchange that finds nothing; none after one whose limit is 0. That saves a
        trip. No jobs for the worker "" means that some may have been lost on the way: `held` has
        them. Not all engines do this.
        """

    @property
    def listening(self) -> bool:
        """Whether signals arrive now."""


class Upkeep(Protocol):
    """What keeps the store moving. Any number of processes may call these at once."""

    async def due(self, limit: int) -> Due:
        """Make up to `limit` scheduled jobs pending whose time has come."""

    async def wake(self, ids: Sequence[str]) -> list[str]:
        """Make those of these jobs due at once that are suspended and whose wait is over: one of
        the things that they await has come about. Answers them. Others are left alone, so it may
        be called at any time; whoever changes what a job may await calls it afterwards.
        """

    async def suspended(self, *, after: str = "", limit: int = 1_000) -> list[str]:
        """Ids of suspended jobs, in the order of ids, after one of them: to `wake` those that were
        forgotten because somebody died in between.
        """

    async def lost(self, limit: int) -> list[LostJob]:
        """Declare workers with a lapsed lease dead and answer up to `limit` jobs that dead workers
        hold. Settle them through `exchange`: their tokens are still good, so if a dead worker
        finishes one first, or two sweeps race, one outcome counts.
        """

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        """Delete up to `limit` finished jobs, oldest first: those that finished more than
        `older_than` seconds ago, and those beyond the newest `keep`. Their keys and entries go
        with them. One whose parent stays, because that has not finished, is not old enough, or is
        spared itself, is spared: its parent may yet ask for its result, also if it is run again.
        For each that kept artifacts (entries of kind "artifact") a record of kind
        "pruned-artifacts" with its id as the key is written in the same step, so that somebody
        removes the files. A call that deletes fewer than `limit` also clears all idle lanes,
        workers that were declared dead more than a day ago and hold nothing, and queues that are
        empty, not paused, and have had no new job for more than a day (up to an hour later).
        """


class Steering(Protocol):
    """What people do to jobs and queues."""

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        """Cancel jobs: True for one that is cancelled now, False for a running one that has been
        asked to stop. Finished and unknown ones are left out of the answer. Only the latter show
        `cancel_requested`, also when they are finished.
        """

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        """Run finished jobs again, and scheduled ones now. Answers those that were moved.

        A finished job starts again at attempt 0 with a place at the end of its lane; its entries,
        attempt log and growing token are kept. Progress, stage, message, error and result are as
        of a new job. A scheduled one keeps them: it only becomes due.
        """

    async def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        """Deliver an event to a job that has not finished: kept as its entry (`EVENT`, event), with
        the token that the job has now. The first of a name counts: a second is "already" there,
        also if the job has finished since. The job is not woken by this alone (`wake`).
        """

    async def rerun_without(
        self, job_id: str, names: Sequence[tuple[str, str]], *, token: int,
        record: RecordChange | None = None,
    ) -> bool:  # fmt: skip
        """`rerun` a finished job without some of its entries, given by kind and name, and write a
        record, whatever version is there: one step. False, and nothing is changed, if it is
        unknown, not finished, or has another token: somebody else has run it since. So of
        several callers at once one is accepted. Names that do not exist are fine.
        """

    async def pause(self, queue: str, paused: bool) -> None:
        """Stop or resume handing out a queue's jobs. Running ones go on."""


class Viewing(Protocol):
    """What people see. Read-only; never in the way of the verbs above."""

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs with these ids, in that order; unknown ones are left out."""

    async def get_part(self, ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        """Some of these jobs, in any order, and the ids that are yet to be asked for: fewer each
        time. Arguments and results together have about so many bytes, or belong to one job. What
        is short comes in one trip, as with `get`; what is longer never holds up other verbs.
        """

    async def list_jobs(
        self, filter: JobFilter, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs by descending id (newest first). `cursor` is the last id seen, whether or
        not that job still exists. Raises `InvalidInput` if it cannot be an id.
        """

    async def queues(self) -> list[QueueView]:
        """Every queue that has unfinished jobs, is paused, or was used lately, by name: one that is
        empty and not paused stays until `prune`, more than a day after its last new job, forgets
        it. The oldest pending job is the one that has been due for longest, ready or waiting for
        its lane.
        """

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[LaneView]:
        """Lanes with holders or waiting jobs: the most waiting first, then by queue and lane.

        Holders, also those that keep their place for a retry, are named by priority, then arrival.
        The age is that of the waiting job that has been due for longest; None if nobody waits.
        """

    async def workers(self) -> list[Worker]:
        """Workers, alive ones first, then by name, then the newest first. Dead ones are shown
        until they are pruned.
        """


class Records(Protocol):
    """Small administrative records, each with a version that guards changes."""

    async def record_get(self, kind: str, key: str) -> Record | None:
        """One record."""

    async def record_put(
        self, kind: str, key: str, body: bytes, *, version: int | None = None
    ) -> Record:
        """Write a record. `version` None: whatever is there; 0: only if it does not exist; n: only
        if it still has version n. Raises `RecordConflict` otherwise.
        """

    async def record_delete(self, kind: str, key: str, *, version: int | None = None) -> bool:
        """Delete a record, with the same guard. False if it did not exist."""

    async def record_list(self, kind: str, *, after: str = "", limit: int = 1_000) -> list[Record]:
        """Records of a kind by key, in the order of its bytes, after a key."""


class Engine(Lifecycle, Producing, Working, Upkeep, Steering, Viewing, Records, Protocol):
    """Everything together."""
