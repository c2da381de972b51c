"""What a worker does: it is registered in each store, and its lease is renewed in each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from headrace.engine.base import Engine, LeaseKeeper
from headrace.engine.several.exchange import Exchanging
from headrace.engine.several.lease import SeveralKeepers
from headrace.engine.several.signals import knows
from headrace.engine.several.store.member import Member
from headrace.errors import StoreUnavailable
from headrace.model.durable.writes import Note, StoredEntry
from headrace.model.job import ClaimedJob
from headrace.model.worker import WorkerInfo


class Working(Exchanging):
    """What a worker does."""

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        """Register a worker in all stores; in one that is away as soon as it answers."""
        self._workers[worker.id] = (worker, lease_seconds)
        answers = await self.ask_all(lambda engine: engine.register(worker, lease_seconds))
        for member in answers:
            member.workers[worker.id] = worker.id

    async def know(self, worker: WorkerInfo) -> None:
        """Replace the tasks that a living worker knows."""
        if worker.id in self._workers:
            self._workers[worker.id] = (worker, self._workers[worker.id][1])

        await self.ask_each(
            {
                member: knows(
                    msgspec.structs.replace(worker, id=member.workers.get(worker.id, worker.id))
                )
                for member in self.members
            }
        )

    def keeper(self, worker_id: str, lease_seconds: float) -> LeaseKeeper:
        """Return the object that renews this worker's lease in all stores."""
        loop = asyncio.get_running_loop() if self._loop is None else self._loop
        return SeveralKeepers(self, worker_id, lease_seconds, loop)

    async def retire(self, worker_id: str) -> None:
        """Deregister a worker in all stores. In one that is away its lease lapses."""
        self._workers.pop(worker_id, None)

        def retiring(member: Member) -> Callable[[Engine], Awaitable[None]]:
            their_id = member.workers.pop(worker_id, worker_id)
            member.lost_by(worker_id)

            async def retire(engine: Engine) -> None:
                # Its jobs are given to others now: not those that have ended.
                await member.finish()
                await engine.retire(their_id)

            return retire

        await self.ask_each({member: retiring(member) for member in self.members})

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        """Record notes, each in the store of its job. If one store does not answer, the others have
        recorded theirs, and this raises `StoreUnavailable` that names the jobs that are left.
        """
        await self.locate([each.job_id for each in notes])
        shares: dict[Member, list[Note]] = {}
        refused: list[str] = []
        for each in notes:
            member = self.remembered(each.job_id)
            if member is None:
                refused.append(each.job_id)
            else:
                shares.setdefault(member, []).append(each)

        def writing(some: list[Note]) -> Callable[[Engine], Awaitable[tuple[str, ...]]]:
            return lambda engine: engine.write_progress(some)

        try:
            answers = await self.ask_each(
                {member: writing(some) for member, some in shares.items()}
            )
        except StoreUnavailable:
            if not self.living:
                raise
            answers = {}
        refused += [each for some in answers.values() for each in some]
        left = [each for member, some in shares.items() if member not in answers for each in some]
        if left:
            away = next(member for member in shares if member not in answers)
            raise StoreUnavailable(
                str(away.unavailable(away.away or TimeoutError("no answer"))),
                left=tuple(each.job_id for each in left),
                refused=tuple(refused),
            )
        return tuple(refused)

    async def claimed_by(self, worker_id: str) -> list[ClaimedJob]:
        """Return the jobs leased to this worker in the stores that answer, without those whose
        outcome is on its way.
        """
        # Also what arrives while this is asked: its job may have been read before.
        owed = {member: member.debts.attempts for member in self.members}

        def held_by(their_id: str) -> Callable[[Engine], Awaitable[list[ClaimedJob]]]:
            return lambda engine: engine.claimed_by(their_id)

        answers = await self.ask_each(
            {
                member: held_by(their_id)
                for member in self.members
                if (their_id := self.their_id(member, worker_id)) is not None
            }
        )
        found: list[ClaimedJob] = []
        for member, jobs in answers.items():
            hidden = owed[member] | member.debts.attempts
            here = [job for job in jobs if (job.id, job.token) not in hidden]
            self.leased(member, worker_id, here)
            found += here
        return found

    async def now(self) -> float:
        """Return the time of the default store, or of the first that answers."""
        for member in self.living[:-1]:
            try:
                return await member.ask_soon(lambda engine: engine.now())
            except StoreUnavailable:
                continue
        last = (self.living or self.members)[-1]
        return await last.ask_soon(lambda engine: engine.now())

    async def entries(self, job_id: str, kind: str | None = None) -> list[StoredEntry]:
        """Return the entries of a job."""
        home = (await self.locate([job_id])).get(job_id)
        if home is None:
            return []
        return await home.ask(lambda engine: engine.entries(job_id, kind))
