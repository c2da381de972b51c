"""The verbs of a worker: register, claim, settle, write progress, listen."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import msgspec

from headrace.clock import Clock
from headrace.engine.base import CancelSignal, JobsSignal, WorkSignal
from headrace.engine.follower_steps import steps
from headrace.engine.redis.claim import claimed_in
from headrace.engine.redis.codec import (
    StoredWorker,
    at,
    follow_arguments,
    note_arguments,
    settlement_arguments,
)
from headrace.engine.redis.connection.lease_renewal import RedisLeaseKeeper
from headrace.engine.redis.connection.store import RedisStore
from headrace.engine.redis.layout import newest
from headrace.engine.redis.notify import SignalListener
from headrace.engine.stored_text import storable
from headrace.model.durable.writes import Note, StoredEntry
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange
from headrace.model.worker import WorkerInfo, WorkerStats

_ENTRY = struct.Struct("<Id")


def _storable(worker: WorkerInfo) -> StoredWorker:
    return StoredWorker(
        id=worker.id,
        name=storable(worker.name),
        host=storable(worker.host),
        pid=worker.pid,
        version=storable(worker.version),
        queues=worker.queues,
        slots=worker.slots,
        tasks=worker.tasks,
        schema_version=newest(),
    )


class Working(RedisStore):
    """See `headrace.engine.base.Working`."""

    # Whether the last exchange met rates or holds: then the next one asks for them at once.
    _rated = False

    def __init__(self, url: str, *, clock: Clock, migrate: bool = True) -> None:
        super().__init__(url, clock=clock, migrate=migrate)
        self._listener = SignalListener(self._link, self.key("signals"))

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        known = _storable(worker)
        info, stats = msgspec.msgpack.encode(known), msgspec.msgpack.encode(WorkerStats())
        await self.run("register", known.id, known.name, info, lease_seconds, stats)

    async def know(self, worker: WorkerInfo) -> None:
        await self.run("know", worker.id, msgspec.msgpack.encode(_storable(worker)))

    def keeper(self, worker_id: str, lease_seconds: float) -> RedisLeaseKeeper:
        return RedisLeaseKeeper(self, worker_id, lease_seconds)

    async def retire(self, worker_id: str) -> None:
        await self.run("retire", worker_id)

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
        free: int | None = None,
    ) -> Exchange:
        if [each for each in settlements if each.follow]:
            refused = [job_id for step in steps(settlements) for job_id in await self._step(step)]
            claimed = await self.exchange(
                [], worker_id=worker_id, queues=queues, limit=limit, free=free
            )
            return Exchange(tuple(refused), claimed.jobs, claimed.next_in)
        named = () if queues is None else tuple(queues)
        outcomes, holds = settlement_arguments(settlements)
        asked = (
            worker_id or "",
            limit,
            self._listener.inbox,
            -1 if queues is None else len(named),
        )
        if not self._rated and not holds:
            answer = await self.run("exchange", *asked, *named, *outcomes)
            if answer is not None:
                return Exchange(tuple(each.decode() for each in answer[0]), claimed_in(answer, 1))
        most = "" if free is None else free
        answer = await self.run("exchange_rated", *asked, most, *named, *outcomes)
        refused_ids, next_in, rated = answer[:3]
        self._rated = bool(rated)
        return Exchange(
            tuple(each.decode() for each in refused_ids),
            claimed_in(answer, 3),
            float(next_in) if next_in else None,
        )

    async def _step(self, settlements: Sequence[Settlement]) -> Sequence[str]:
        """Record a step of `steps`; return the ids that were refused."""
        if not settlements[0].follow:
            return (await self.exchange(settlements)).refused
        arguments, impossible, rated = follow_arguments(settlements)
        refused = None if rated else await self.run("follow", *arguments)
        if refused is None:
            refused = await self.run("follow_rated", *arguments)
        return [*impossible, *(each.decode() for each in refused)]

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        refused = await self.run("note", *note_arguments(notes))
        return tuple(dict.fromkeys(each.decode() for each in refused))

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        return claimed_in(await self.run("held", worker_id))

    async def now(self) -> float:
        seconds, micros = await self._link.call("TIME")
        return int(seconds) + int(micros) / 1e6 + self.clock.offset

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        answer = await self.run("entries", job_id)
        entries = []
        for field, value in zip(answer[::2], answer[1::2], strict=True):
            entry_kind, _, name = field.decode().partition("\0")
            if kind is None or kind == entry_kind:
                token, when = _ENTRY.unpack_from(value)
                body = value[_ENTRY.size :]
                entries.append(StoredEntry(entry_kind, name, body, token, at(when)))
        return entries

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        return await self._listener.listen(on_work, on_cancel, on_jobs)

    @property
    def listening(self) -> bool:
        return self._listener.listening
