"""What a worker does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from headrace.engine.base import CancelSignal, JobsSignal, LeaseKeeper, WorkSignal
from headrace.engine.following import first_of_each, steps
from headrace.engine.postgres import rows
from headrace.engine.postgres.claim import ClaimCursor
from headrace.engine.postgres.columns import merged_notes, note_columns, settlement_columns
from headrace.engine.postgres.connection import migrate
from headrace.engine.postgres.follow import Following
from headrace.engine.postgres.lease import PostgresLeaseKeeper
from headrace.engine.postgres.sql import query
from headrace.engine.text import is_id, storable
from headrace.errors import InvalidInput
from headrace.model.durable.writes import Note, StoredEntry
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange
from headrace.model.worker import WorkerInfo

_REGISTER = query("register")
_KNOW = query("know")
_RETIRE = query("retire")
_EXCHANGE = query("exchange")
_NOTE = query("note")
_HELD = query("held")
_NOW = query("now")
_ENTRIES = query("entries")


class Working(Following):
    """Leases, exchanges, notes and signals."""

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        await self._common.fetch(
            _REGISTER,
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
        await self._common.fetch(_KNOW, worker.id, worker.tasks)

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        return PostgresLeaseKeeper(self.address, self.clock, worker_id, lease_seconds)

    async def retire(self, worker_id: str) -> None:
        await self._common.fetch(_RETIRE, self.clock.offset, worker_id)

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
    ) -> Exchange:
        """Record outcomes, then lease ready jobs: one statement, one transaction."""
        if worker_id is None:
            limit = 0
        if not settlements and limit <= 0:
            return Exchange((), [])
        if [each for each in settlements if each.follow]:
            return await self._exchange_in_steps(settlements, worker_id, queues, limit)
        if len(settlements) > len({each.job_id for each in settlements}):
            # One statement does not see which of two outcomes of a job came first.
            first, others = first_of_each(settlements)
            before = await self.exchange(first)
            after = await self.exchange(others, worker_id=worker_id, queues=queues, limit=limit)
            return Exchange(before.refused + after.refused, after.jobs)
        try:
            return await self._exchange_once(settlements, worker_id, queues, limit)
        except InvalidInput:
            # A value that the server cannot store. Nothing has happened: go one by one.
            if not settlements:
                raise
        refused = await self._settle_singly(settlements)
        claimed = await self._exchange_once([], worker_id, queues, limit)
        return Exchange(refused, claimed.jobs)

    async def _exchange_in_steps(
        self,
        settlements: Sequence[Settlement],
        worker_id: str | None,
        queues: Sequence[str] | None,
        limit: int,
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
        claimed = await self.exchange([], worker_id=worker_id, queues=queues, limit=limit)
        refused += await self._follow_when_known(doubtful)
        # Later outcomes of the same attempts.
        refused += (await self.exchange(later)).refused
        return Exchange(tuple(refused), claimed.jobs)

    async def _settle_singly(self, settlements: Sequence[Settlement]) -> tuple[str, ...]:
        refused: list[str] = []
        for each in settlements:
            try:
                refused.extend((await self._exchange_once([each], None, None, 0)).refused)
            except InvalidInput:
                refused.append(each.job_id)
        return tuple(refused)

    async def _exchange_once(
        self,
        settlements: Sequence[Settlement],
        worker_id: str | None,
        queues: Sequence[str] | None,
        limit: int,
    ) -> Exchange:
        named = None if queues is None else tuple(queues)
        cursor = self._cursors.setdefault(named, ClaimCursor())
        start = cursor.start(monotonic())
        # Outcomes that come beside a claim need not wait for it.
        link = self._common if limit <= 0 and self._exchanges.busy else self._exchanges
        found = await link.fetch(
            _EXCHANGE,
            self.clock.offset,
            *settlement_columns(settlements),
            self._lanes_seen,
            worker_id,
            queues,
            max(limit, 0),
            start,
            *self._claimed_lanes.columns(settlements),
        )
        self._claimed_lanes.forget(settlements)
        refused: tuple[str, ...] = ()
        seconds = 0.0
        if found and found[0]["id"] is None:
            more = found.pop(0)
            refused = tuple(map(str, more["refused"] or ()))
            seconds = (more["scan_ms"] or 0) / 1000
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
        jobs = [rows.claimed(row) for row in found]
        self._claimed_lanes.remember(jobs)
        return Exchange(refused, jobs)

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        merged = merged_notes(notes)
        if not merged:
            return ()
        try:
            return await self._write_notes(merged)
        except InvalidInput:
            refused: list[str] = []
            for each in merged:
                try:
                    refused.extend(await self._write_notes([each]))
                except InvalidInput:
                    refused.append(each.job_id)
            return tuple(refused)

    async def _write_notes(self, notes: list[Note]) -> tuple[str, ...]:
        [(taken,)] = await self._common.fetch(_NOTE, self.clock.offset, *note_columns(notes))
        numbers = set(taken)
        return tuple(each.job_id for n, each in enumerate(notes, start=1) if n not in numbers)

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        return [
            rows.claimed(row, cancel_requested=row["cancel_requested"])
            for row in await self._common.fetch(_HELD, worker_id)
        ]

    async def now(self) -> float:
        [(now,)] = await self._common.fetch(_NOW)
        return float(now) + self.clock.offset

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        if not is_id(job_id):
            return []
        return [StoredEntry(*row) for row in await self._common.fetch(_ENTRIES, job_id, kind)]

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        return await self._signals.listen(on_work, on_cancel)

    @property
    def listening(self) -> bool:
        return self._signals.listening
