"""Jobs in one SQLite file. Each verb is a function over a transaction; this says who runs it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from headrace.clock import Clock
from headrace.engine.base import CancelSignal, JobsSignal, LeaseKeeper, WorkSignal
from headrace.engine.sqlite import (
    claim,
    control,
    insert,
    lanes,
    lease,
    records,
    report,
    settle,
    upkeep,
    views,
)
from headrace.engine.sqlite import notes as note
from headrace.engine.sqlite.connection import forks
from headrace.engine.sqlite.connection.address import parse_address
from headrace.engine.sqlite.connection.migrate import check_exists, migrate, schema_state
from headrace.engine.sqlite.connection.opening import check_library
from headrace.engine.sqlite.connection.thread import ConnectionThread, ReaderThread, T, Transaction
from headrace.engine.sqlite.connection.writer import WriterThread
from headrace.errors import EngineUnavailable
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
from headrace.model.worker import Worker, WorkerInfo

N = TypeVar("N")


class SqliteEngine:
    """The embedded engine: one writer thread, one reader thread, one file.

    Several processes on one machine may share the file. Time is this machine's.
    """

    name = "sqlite"

    def __init__(self, url: str, *, clock: Clock, migrate: bool = True) -> None:
        self.clock = clock
        self._may_migrate = migrate
        self._address = parse_address(url)
        self._writer: WriterThread | None = None
        self._reader: ConnectionThread | None = None

    # --- lifecycle

    async def open(self) -> None:
        """Open the file, creating or upgrading it."""
        if self._writer is not None:
            return
        with forks.held_up():
            check_library()
        self._address.check_folder()
        if not self._may_migrate:
            check_exists(self._address)
        writer = WriterThread(self._address, self.clock, name="sqlite-writer")
        writer.may_migrate = self._may_migrate
        await writer.start()
        reader: ConnectionThread = writer
        if self._address.path is not None:
            reader = ReaderThread(self._address, self.clock, name="sqlite-reader")
            try:
                await reader.start()
            except BaseException:
                await writer.stop()
                raise
        self._writer, self._reader = writer, reader

    async def close(self) -> None:
        """Finish what was accepted and close both connections."""
        writer, reader = self._writer, self._reader
        self._writer = self._reader = None
        if reader is not None:
            await reader.stop()
        if writer is not None:
            await writer.stop()

    async def schema(self) -> SchemaState:
        return await asyncio.to_thread(schema_state, self._address)

    async def migrate(self) -> None:
        await asyncio.to_thread(migrate, self._address)

    async def report(self) -> EngineReport:
        """Tell version, durability and disk space."""
        return await self._write(lambda it: report.report(it, self._address))

    async def audit(self) -> list[Finding]:
        """Check the invariants in one snapshot."""
        return await self._read(report.audit)

    # --- producing

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        """Store jobs durably, in this order, and a record with them."""
        return await self._write(lambda it: insert.insert(it, jobs, record))

    # --- working

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        """Introduce a worker and start its lease."""
        await self._write(lambda it: lease.register(it, worker, lease_seconds))

    async def know(self, worker: WorkerInfo) -> None:
        """A worker knows other tasks than it said."""
        await self._write(lambda it: lease.know(it, worker))

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        """Make the object that renews this worker's lease."""
        return lease.SqliteLeaseKeeper(self._open_writer(), worker_id, lease_seconds)

    async def retire(self, worker_id: str) -> None:
        """A worker takes leave."""
        await self._write(lambda it: lease.retire(it, worker_id))

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
    ) -> Exchange:
        """Record outcomes, then lease ready jobs, in one transaction."""

        def operation(it: Transaction) -> Exchange:
            refused = settle.settle(it, settlements)
            jobs = [] if worker_id is None else claim.claim(it, worker_id, queues, limit)
            return Exchange(tuple(refused), jobs)

        return await self._write(operation)

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        """Record what running attempts tell."""
        return await self._write(lambda it: note.note(it, notes))

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        """The jobs that are leased to this worker."""
        return await self._read(lambda it: claim.held(it, worker_id))

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        """What was kept with a job."""
        return await self._read(lambda it: note.entries(it, job_id, kind))

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        """Call these when jobs become ready or should stop, whichever process caused it."""
        return self._open_writer().listen(on_work, on_cancel)

    @property
    def listening(self) -> bool:
        """Whether signals arrive now."""
        return self._writer is not None and self._writer.listening

    # --- upkeep

    async def promote_due(self, limit: int) -> Due:
        """Make scheduled jobs pending whose time has come."""
        return await self._write(lambda it: upkeep.due(it, limit))

    async def wake(self, ids: Sequence[str]) -> list[str]:
        """Make suspended jobs due whose wait is over."""
        return await self._write(lambda it: upkeep.wake(it, ids))

    async def suspended(self, *, after: str = "", limit: int = 1_000) -> list[str]:
        """Ids of suspended jobs."""
        return await self._read(lambda it: upkeep.suspended(it, after, limit))

    async def take_lost(self, limit: int) -> list[LostJob]:
        """The jobs that dead workers hold."""
        return await self._write(lambda it: lease.lost(it, limit))

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        """Delete finished jobs, oldest first."""
        found = await self._read(
            lambda it: upkeep.find_old(it, older_than=older_than, keep=keep, limit=limit)
        )
        pruned = await self._write(lambda it: upkeep.prune(it, found))
        if pruned < limit:
            # The last of several steps: lanes and queues are looked through once.
            await self._forget(lanes.find_idle, lanes.forget, ("", ""), limit)
            await self._forget(
                upkeep.find_unused_queues, upkeep.forget_queues, (-math.inf, ""), limit
            )
        return pruned

    async def _forget(
        self,
        find: Callable[[Transaction, N, int], list[N]],
        forget: Callable[[Transaction, list[N]], None],
        after: N,
        limit: int,
    ) -> None:
        """Forget all that is found, a step at a time: the reader looks, others write between."""
        while found := await self._read(partial(_call, find, after, limit)):
            await self._write(partial(_call, forget, found))
            if len(found) < limit:
                return
            after = found[-1]

    # --- steering

    async def cancel(self, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
        """Cancel jobs, or ask running ones to stop."""
        return await self._write(lambda it: control.cancel(it, ids, reason))

    async def rerun(self, ids: Sequence[str]) -> list[str]:
        """Run finished jobs again, and scheduled ones now."""
        return await self._write(lambda it: control.rerun(it, ids))

    async def signal(self, job_id: str, event: str, body: bytes) -> Delivery:
        """Deliver an event to an unfinished job."""
        return await self._write(lambda it: upkeep.signal(it, job_id, event, body))

    async def rerun_without(
        self,
        job_id: str,
        names: Sequence[tuple[str, str]],
        *,
        token: int,
        record: RecordChange | None = None,
    ) -> bool:
        """Run a finished job again without some of its entries."""
        return await self._write(lambda it: control.rerun_without(it, job_id, names, token, record))

    async def pause(self, queue: str, paused: bool) -> None:
        """Stop or resume handing out a queue's jobs."""
        await self._write(lambda it: control.pause(it, queue, paused))

    async def now(self) -> float:
        """This machine's time: whoever shares the file is on this machine."""
        return self.clock.now()

    # --- viewing

    async def get(self, ids: Sequence[str]) -> list[Job]:
        """The jobs with these ids, in that order."""
        return await self._read(lambda it: views.get(it, ids))

    async def get_part(self, ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        """Some of these jobs, and the ids that are yet to be asked for."""
        return await self._read(lambda it: views.get_part(it, ids, most_bytes))

    async def list_jobs(
        self, filter: JobFilter, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs, newest first."""
        return await self._read(lambda it: views.list_jobs(it, filter, cursor, limit))

    async def queues(self) -> list[QueueView]:
        """Every queue with its depth."""
        return await self._read(views.queues)

    async def lanes(
        self, *, queue: str | None = None, lane: str | None = None, limit: int = 100
    ) -> list[LaneView]:
        """Lanes with holders or waiting jobs."""
        return await self._read(lambda it: views.lanes(it, queue, lane, limit))

    async def workers(self) -> list[Worker]:
        """Workers, living ones first."""
        return await self._read(lease.workers)

    # --- records

    async def record_get(self, kind: str, key: str) -> Record | None:
        """One record."""
        return await self._read(lambda it: views.record_get(it, kind, key))

    async def record_put(
        self, kind: str, key: str, body: bytes, *, version: int | None = None
    ) -> Record:
        """Write a record if it has the expected version."""
        return await self._write(lambda it: records.put(it, kind, key, body, version))

    async def record_delete(self, kind: str, key: str, *, version: int | None = None) -> bool:
        """Delete a record if it has the expected version."""
        return await self._write(lambda it: records.delete(it, kind, key, version))

    async def record_list(self, kind: str, *, after: str = "", limit: int = 1_000) -> list[Record]:
        """Records of a kind by key."""
        return await self._read(lambda it: views.record_list(it, kind, after, limit))

    # --- who runs it

    async def _write(self, operation: Callable[[Transaction], T]) -> T:
        return await self._open_writer().run(operation)

    async def _read(self, operation: Callable[[Transaction], T]) -> T:
        if self._reader is None:
            raise self._not_open()
        return await self._reader.run(operation)

    def _open_writer(self) -> WriterThread:
        if self._writer is None:
            raise self._not_open()
        return self._writer

    def _not_open(self) -> EngineUnavailable:
        return EngineUnavailable(
            f"The engine for {str(self._address)!r} is not open; call `await engine.open()` first."
        )


def _call(function: Callable[..., T], *arguments: Any) -> T:
    """For `partial`: the transaction comes last here, and first there."""
    *values, transaction = arguments
    return function(transaction, *values)
