"""Jobs in one SQLite file. Each verb is a function over a transaction; this says who runs it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from headrace.clock import Clock
from headrace.engine.base import CancelSignal, JobsSignal, LeaseKeeper, WorkSignal
from headrace.engine.sqlite import (
    claim,
    control,
    insert,
    insert_policy,
    job_list,
    lanes,
    lease,
    notes,
    records,
    report,
    settle,
    views,
)
from headrace.engine.sqlite.connection import forks
from headrace.engine.sqlite.connection.address import parse_address
from headrace.engine.sqlite.connection.migrate import check_exists, migrate, schema_state
from headrace.engine.sqlite.connection.opening import check_library
from headrace.engine.sqlite.connection.thread import ConnectionThread, ReaderThread, Transaction
from headrace.engine.sqlite.connection.writer import WriterThread
from headrace.engine.sqlite.rates import keys
from headrace.engine.sqlite.upkeep import due, expire, prune
from headrace.errors import EngineUnavailable
from headrace.model.outcome import Settlement
from headrace.model.views import EngineReport, Exchange, SchemaState

N = TypeVar("N")
P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate["SqliteEngine", P], Coroutine[Any, Any, T]]


def _written(verb: Callable[Concatenate[Transaction, P], T]) -> Verb[P, T]:
    """Return the method that runs a verb in a transaction of the writer."""

    @wraps(verb)
    async def method(self: SqliteEngine, /, *values: P.args, **named: P.kwargs) -> T:
        return await self._open_writer().run(lambda it: verb(it, *values, **named))

    return method


def _read(verb: Callable[Concatenate[Transaction, P], T]) -> Verb[P, T]:
    """Return the method that runs a verb on a snapshot of the reader."""

    @wraps(verb)
    async def method(self: SqliteEngine, /, *values: P.args, **named: P.kwargs) -> T:
        return await self._open_reader().run(lambda it: verb(it, *values, **named))

    return method


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

    audit = _read(report.audit)

    async def report(self) -> EngineReport:
        return await self._open_writer().run(lambda it: report.report(it, self._address))

    # --- insert

    insert = _written(insert.insert)
    insert_by_policy = _written(insert_policy.insert_by_policy)

    # --- worker

    register = _written(lease.register)
    know = _written(lease.know)
    retire = _written(lease.retire)
    write_progress = _written(notes.write_progress)
    claimed_by = _read(claim.claimed_by)
    entries = _read(notes.entries)

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        return lease.SqliteLeaseKeeper(self._open_writer(), worker_id, lease_seconds)

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
        free: int | None = None,
    ) -> Exchange:
        def operation(it: Transaction) -> Exchange:
            refused = settle.settle(it, settlements)
            if worker_id is None:
                return Exchange(tuple(refused), [])
            return Exchange(tuple(refused), *claim.claim(it, worker_id, queues, limit, free))

        return await self._open_writer().run(operation)

    async def now(self) -> float:
        """Return this machine's time: whoever shares the file is on this machine."""
        return round(self.clock.now(), 6)

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        return self._open_writer().listen(on_work, on_cancel)

    @property
    def listening(self) -> bool:
        return self._writer is not None and self._writer.listening

    # --- upkeep

    promote_due = _written(due.promote_due)
    expire = _written(expire.expire)
    wake = _written(due.wake)
    suspended = _read(due.suspended)
    take_lost = _written(lease.take_lost)
    _find_old = _read(prune.find_old)
    _prune = _written(prune.prune)

    async def prune(
        self, *, older_than: float | None = None, keep: int | None = None, limit: int = 1_000
    ) -> int:
        found = await self._find_old(older_than=older_than, keep=keep, limit=limit)
        pruned = await self._prune(found)
        if pruned < limit:
            # The last of several steps: lanes, rates and queues are looked through once.
            await self._forget(lanes.find_idle, lanes.forget, ("", ""), limit)
            await self._forget(keys.find_idle, keys.forget, ("", ""), limit)
            await self._forget(keys.find_ahead, keys.set_clocks, ("", ""), limit)
            await self._forget(
                prune.find_unused_queues, prune.forget_queues, (-math.inf, ""), limit
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
        while found := await _read(find)(self, after, limit):
            await _written(forget)(self, found)
            if len(found) < limit:
                return
            after = found[-1]

    # --- control

    cancel = _written(control.cancel)
    rerun = _written(control.rerun)
    rerun_unchanged = _written(control.rerun_unchanged)
    rerun_without = _written(control.rerun_without)
    signal = _written(due.signal)
    pause = _written(control.pause)
    set_rate = _written(keys.set_rate)
    hold_lane = _written(keys.hold_lane)

    # --- views

    get = _read(views.get)
    get_part = _read(views.get_part)
    list_jobs = _read(job_list.list_jobs)
    count_jobs = _read(job_list.count_jobs)
    queues = _read(views.queues)
    lanes = _read(views.lanes)
    rates = _read(keys.rates)
    workers = _read(lease.workers)

    # --- records

    record_get = _read(records.get)
    record_put = _written(records.put)
    record_delete = _written(records.delete)
    record_list = _read(records.list_all)

    # --- who runs it

    def _open_writer(self) -> WriterThread:
        if self._writer is None:
            raise self._not_open()
        return self._writer

    def _open_reader(self) -> ConnectionThread:
        if self._reader is None:
            raise self._not_open()
        return self._reader

    def _not_open(self) -> EngineUnavailable:
        return EngineUnavailable(
            f"The engine for {str(self._address)!r} is not open; call `await engine.open()` first."
        )
