"""Signals of all stores, and what is done when a store answers again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from headrace.engine.base import CancelSignal, Engine, JobsSignal, WorkSignal
from headrace.engine.several.store.member import Member
from headrace.engine.several.store.members import SeveralMembers
from headrace.errors import StoreUnavailable
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob
from headrace.model.worker import WorkerInfo


@dataclass(eq=False, slots=True)
class Listener:
    """Somebody who listens, and how to end that in each store."""

    on_work: WorkSignal
    on_cancel: CancelSignal
    on_jobs: JobsSignal | None
    ends: dict[Member, Callable[[], None]] = field(default_factory=dict)


class Signals(SeveralMembers):
    """Listening to all stores, and the workers of this process in them."""

    # The loop that the stores were opened on.
    _loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Be told when a store answers again."""
        self._listeners: list[Listener] = []
        # Workers of this process, and how long their leases are.
        self._workers: dict[str, tuple[WorkerInfo, float]] = {}
        for member in self.members:
            member.watched_by(self._back)

    async def listen(
        self, on_work: WorkSignal, on_cancel: CancelSignal, on_jobs: JobsSignal | None = None
    ) -> Callable[[], None]:
        """Listen to all stores; to one that is away as soon as it answers."""
        listener = Listener(on_work, on_cancel, on_jobs)
        self._listeners.append(listener)
        for member in self.living:
            with contextlib.suppress(StoreUnavailable):
                await self._subscribe(member, listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
            for each in listener.ends.values():
                each()
            listener.ends.clear()

        return end

    @property
    def listening(self) -> bool:
        """Whether the signals of all stores that answer arrive now."""
        return all(each.engine.listening for each in self.living)

    async def _subscribe(self, member: Member, listener: Listener) -> None:
        def on_work() -> None:
            member.empty_since = None
            listener.on_work()

        def on_jobs(their_id: str, jobs: Sequence[ClaimedJob]) -> None:
            worker_id = member.worker_of(their_id) or their_id or None
            if worker_id is not None:
                self.leased(member, worker_id, jobs)
            if listener.on_jobs is not None and (worker_id is not None or not their_id):
                listener.on_jobs(worker_id or "", jobs)

        pushes = None if listener.on_jobs is None else on_jobs
        end = await member.ask(lambda engine: engine.listen(on_work, listener.on_cancel, pushes))
        if listener in self._listeners:
            listener.ends[member] = end
        else:
            end()

    def their_id(self, member: Member, worker_id: str) -> str | None:
        """Return the id of a worker in one store; None if it is not registered there yet."""
        return member.workers.get(worker_id, None if worker_id in self._workers else worker_id)

    def leased(self, member: Member, worker_id: str, jobs: Sequence[ClaimedJob]) -> None:
        """Note who has these jobs, and where they are."""
        for job in jobs:
            member.held[job.id] = worker_id
        self.remember(member, [job.id for job in jobs])
        self.remember(member, [job.parent for job in jobs])

    def hand_over(self, worker_id: str, jobs: Sequence[ClaimedJob]) -> None:
        """Give jobs to a worker that did not wait for them. "" and none: look for lost claims."""
        for listener in list(self._listeners):
            if listener.on_jobs is not None:
                listener.on_jobs(worker_id, jobs)

    @property
    def takes_jobs(self) -> bool:
        """Whether somebody takes jobs that come later than the reply."""
        return any(each.on_jobs is not None for each in self._listeners)

    async def _back(self, member: Member) -> None:
        """A store answers again: register workers there, listen, and look for what was missed."""
        for worker_id in list(self._workers):
            if worker_id not in member.workers:
                await self.register_in(member, worker_id, worker_id)
            else:
                # It may have come to know other tasks meanwhile.
                info, _ = self._workers[worker_id]
                own = msgspec.structs.replace(info, id=member.workers[worker_id])
                await member.ask(knows(own))
        for listener in list(self._listeners):
            if member not in listener.ends:
                await self._subscribe(member, listener)
        member.empty_since = None
        # Claims may have been made whose replies were lost.
        self.hand_over("", ())
        for listener in list(self._listeners):
            listener.on_work()

    async def register_in(self, member: Member, worker_id: str, their_id: str) -> None:
        """Register a worker of this process in one store, under an id of its own there."""
        info, lease_seconds = self._workers[worker_id]
        own = msgspec.structs.replace(info, id=their_id)
        await member.ask(lambda engine: engine.register(own, lease_seconds))
        member.workers[worker_id] = their_id

    async def register_anew(self, member: Member, worker_id: str) -> None:
        """The lease in one store has lapsed: register there under a new id."""
        if worker_id in self._workers and member.workers.pop(worker_id, None) is not None:
            # If this fails, `_back` does it.
            with contextlib.suppress(StoreUnavailable):
                await self.register_in(member, worker_id, new_id())
                for listener in list(self._listeners):
                    listener.on_work()


def knows(worker: WorkerInfo) -> Callable[[Engine], Awaitable[None]]:
    """Return the call that replaces the tasks that this worker knows."""
    return lambda engine: engine.know(worker)
