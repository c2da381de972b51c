"""What a worker does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import TypeVar

from headrace.engine.base import CancelSignal, JobsSignal, LeaseKeeper, WorkSignal
from headrace.engine.follower_steps import first_of_each, steps
from headrace.engine.postgres import rows
from headrace.engine.postgres.columns import merged_notes, note_columns, settlement_columns
from headrace.engine.postgres.connection import migrate
from headrace.engine.postgres.connection.claim_memory import ClaimCursor
from headrace.engine.postgres.connection.lease_renewal import PostgresLeaseKeeper
from headrace.engine.postgres.rates.keys import hold_column
from headrace.engine.postgres.settle_followers import Following
from headrace.engine.postgres.sql import sql
from headrace.engine.rows import claimed as claimed_job
from headrace.engine.stored_text import is_id, storable
from headrace.errors import InvalidInput
from headrace.model.durable.writes import Note, StoredEntry
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange
from headrace.model.worker import WorkerInfo

T = TypeVar("T", Settlement, Note)


class Working(Following):
    """Leases, exchanges, notes and signals."""

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        await self._common.fetch(
            sql.register,
            self.clock.offset,
            worker.id,
            storable(worker.name),
            storable(worker.host),
            worker.pid,
            storable(worker.version),
            worker.queues,
            worker.slots,
            lease_seconds,
            worker.tasks,
            migrate.NEWEST,
        )

    async def know(self, worker: WorkerInfo) -> None:
        await self._common.fetch(sql.know, worker.id, worker.tasks)

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        return PostgresLeaseKeeper(self.connector, self.clock, worker_id, lease_seconds)

    async def retire(self, worker_id: str) -> None:
        await self._common.fetch(sql.retire, self.clock.offset, worker_id)

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
        free: int | None = None,
    ) -> Exchange:
        """Record outcomes, then lease ready jobs: one statement, one transaction."""
        if worker_id is None:
            limit = 0
        if not settlements and limit <= 0:
            return Exchange((), [])
        if [each for each in settlements if each.follow]:
            return await self._exchange_in_steps(settlements, worker_id, queues, limit, free)
        if len(settlements) > len({each.job_id for each in settlements}):
            # One statement does not see which of two outcomes of a job came first.
            first, others = first_of_each(settlements)
            before = await self.exchange(first)
            after = await self.exchange(
                others, worker_id=worker_id, queues=queues, limit=limit, free=free
            )
            return Exchange(before.refused + after.refused, after.jobs, after.next_in)
        if limit > 0 and hold_column(settlements):
            # Both lock keys of rates in their order, so they are two transactions.
            before = await self.exchange(settlements)
            after = await self.exchange(
                [], worker_id=worker_id, queues=queues, limit=limit, free=free
            )
            return Exchange(before.refused, after.jobs, after.next_in)
        try:
            return await self._exchange_once(settlements, worker_id, queues, limit, free)
        except InvalidInput:
            # A value that the server cannot store. Nothing has happened: go one by one.
            if not settlements:
                raise

        async def settle(one: Settlement) -> tuple[str, ...]:
            return (await self._exchange_once([one], None, None, 0, None)).refused

        refused = await _one_by_one(settlements, settle)
        claimed = await self._exchange_once([], worker_id, queues, limit, free)
        return Exchange(refused, claimed.jobs, claimed.next_in)

    async def _exchange_in_steps(
        self,
        settlements: Sequence[Settlement],
        worker_id: str | None,
        queues: Sequence[str] | None,
        limit: int,
        free: int | None,
    ) -> Exchange:
        """Record outcomes of which some have followers, and claim; what has to wait comes last."""
        refused: list[str] = []
        doubtful: list[Settlement] = []
        later: list[Settlement] = []
        for step in steps(settlements):
            waiting = {each.job_id for each in doubtful}
            later += [each for each in step if each.job_id in waiting]
            now = [each for each in step if each.job_id not in waiting]
            if now and now[0].follow:
                stale, more = await self._follow(now)
                refused += stale
                doubtful += more
            else:
                refused += (await self.exchange(now)).refused
        claimed = await self.exchange(
            [], worker_id=worker_id, queues=queues, limit=limit, free=free
        )
        refused += await self._follow_when_known(doubtful)
        # Later outcomes of the same attempts.
        refused += (await self.exchange(later)).refused
        return Exchange(tuple(refused), claimed.jobs, claimed.next_in)

    async def _exchange_once(
        self,
        settlements: Sequence[Settlement],
        worker_id: str | None,
        queues: Sequence[str] | None,
        limit: int,
        free: int | None,
    ) -> Exchange:
        named = None if queues is None else tuple(queues)
        cursor = self._cursors.setdefault(named, ClaimCursor())
        start = cursor.start(monotonic())
        # Outcomes that come beside a claim need not wait for it.
        link = self._common if limit <= 0 and self._exchanges.busy else self._exchanges
        found = await link.fetch(
            sql.exchange,
            self.clock.offset,
            *settlement_columns(settlements),
            self._lanes_seen,
            worker_id,
            queues,
            max(limit, 0),
            start,
            *self._claimed_lanes.columns(settlements),
            hold_column(settlements) if limit <= 0 else [],
            free,
        )
        self._claimed_lanes.forget(settlements)
        refused: tuple[str, ...] = ()
        seconds = 0.0
        next_in: float | None = None
        if found and found[0]["id"] is None:
            more = found.pop(0)
            refused = tuple(map(str, more["refused"] or ()))
            seconds = (more["scan_ms"] or 0) / 1000
            next_in = more["next_in"]
            if more["notify"]:
                self._signals.notify_soon()
        if limit > 0 and (seconds or start):
            first = min((row[rows.SEQ] for row in found), default=None)
            short = len(found) < limit
            cursor.scanned(monotonic(), start=start, first_seq=first, short=short, seconds=seconds)
        if found:
            found.sort(key=rows.start_order)
            self._lanes_seen = 2 * sum(row[rows.LANE] is not None for row in found) > len(found)
            self._vacuum.count(len(found))
        jobs = [claimed_job(row) for row in found]
        self._claimed_lanes.remember(jobs)
        return Exchange(refused, jobs, next_in)

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        merged = merged_notes(notes)
        if not merged:
            return ()
        try:
            return await self._write_notes(merged)
        except InvalidInput:
            return await _one_by_one(merged, lambda one: self._write_notes([one]))

    async def _write_notes(self, notes: list[Note]) -> tuple[str, ...]:
        [(taken,)] = await self._common.fetch(sql.note, self.clock.offset, *note_columns(notes))
        numbers = set(taken)
        return tuple(each.job_id for n, each in enumerate(notes, start=1) if n not in numbers)

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        return [
            claimed_job(row, cancel_requested=row["cancel_requested"])
            for row in await self._common.fetch(sql.held, worker_id)
        ]

    async def now(self) -> float:
        [(now,)] = await self._common.fetch(sql.now)
        return float(now) + self.clock.offset

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        if not is_id(job_id):
            return []
        return [StoredEntry(*row) for row in await self._common.fetch(sql.entries, job_id, kind)]

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        return await self._signals.listen(on_work, on_cancel)

    @property
    def listening(self) -> bool:
        return self._signals.listening


async def _one_by_one(
    items: Sequence[T], call: Callable[[T], Awaitable[tuple[str, ...]]]
) -> tuple[str, ...]:
    """Make a call for each item, and return the ids that were refused or cannot be stored."""
    refused: list[str] = []
    for each in items:
        try:
            refused.extend(await call(each))
        except InvalidInput:
            refused.append(each.job_id)
    return tuple(refused)
