"""Renewing a lease in several stores, each on a thread of its own: a store that hangs must not cost
the lease in another.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.engine.base import LeaseKeeper
from headrace.errors import EngineUnavailable
from headrace.model.worker import Renewal, WorkerStats

if TYPE_CHECKING:
    from headrace.engine.several.signals import Signals
    from headrace.engine.several.store.member import Member

Reply = concurrent.futures.Future[Renewal]


class SeveralKeepers:
    """A `LeaseKeeper` for all stores. The lease counts as renewed while one of them has it."""

    def __init__(
        self,
        stores: Signals,
        worker_id: str,
        lease_seconds: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._stores = stores
        self._worker_id = worker_id
        self._loop = loop
        # After the first reply the others are waited for so long: what comes later counts then.
        self._patience = min(lease_seconds / 10, 1.0)
        self._longest = lease_seconds
        self._threads = {member: MemberThread(member, lease_seconds) for member in stores.members}
        self._replies: dict[Member, Reply] = {}

    def renew(self, stats: WorkerStats) -> Renewal:
        for member, thread in self._threads.items():
            their_id = self._stores.their_id(member, self._worker_id)
            if member not in self._replies and their_id is not None:
                self._replies[member] = thread.renew(their_id, stats)
        waiting = list(self._replies.values())
        done, left = concurrent.futures.wait(
            waiting, timeout=self._longest, return_when=concurrent.futures.FIRST_COMPLETED
        )
        if left and done:
            concurrent.futures.wait(left, timeout=self._patience)
        found: dict[Member, Renewal] = {}
        error: BaseException | None = None
        for member, reply in list(self._replies.items()):
            if reply.done():
                del self._replies[member]
                error = reply.exception()
                if error is None:
                    found[member] = reply.result()
        if not found:
            raise error or EngineUnavailable("no store has renewed the lease in time")
        if not any(each.alive for each in found.values()):
            return Renewal(False)
        lost: list[str] = []
        for member, each in found.items():
            if not each.alive:
                lost += member.lost_by(self._worker_id)
                self._register_anew(member)
        cancelled = tuple(job_id for each in found.values() for job_id in each.cancelled)
        return Renewal(True, cancelled, tuple(lost))

    def _register_anew(self, member: Member) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed at this moment
            asyncio.run_coroutine_threadsafe(
                self._stores.register_anew(member, self._worker_id), self._loop
            )

    def close(self) -> None:
        for each in self._threads.values():
            each.close()


class MemberThread:
    """Renews in one store. A keeper is used on one thread only."""

    def __init__(self, member: Member, lease_seconds: float) -> None:
        self._member = member
        self._lease_seconds = lease_seconds
        self._keeper: LeaseKeeper | None = None
        self._keeper_of: str | None = None
        self._asked: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def renew(self, their_id: str, stats: WorkerStats) -> Reply:
        """Renew on the thread."""
        if self._thread is None:
            name = f"headrace-lease-{self._member.name}"
            self._thread = threading.Thread(target=self._main, name=name, daemon=True)
            self._thread.start()
        reply: Reply = concurrent.futures.Future()

        def renew() -> None:
            try:
                reply.set_result(self._renew(their_id, stats))
            except BaseException as error:
                self._close_keeper()
                reply.set_exception(error)

        self._asked.put(renew)
        return reply

    def close(self) -> None:
        """End the thread; one that hangs is abandoned."""
        self._asked.put(None)

    def _main(self) -> None:
        while (call := self._asked.get()) is not None:
            call()
        self._close_keeper()

    def _renew(self, their_id: str, stats: WorkerStats) -> Renewal:
        if self._keeper is None or self._keeper_of != their_id:
            self._close_keeper()
            self._keeper = self._member.engine.keeper(their_id, self._lease_seconds)
            self._keeper_of = their_id
        return self._keeper.renew(stats)

    def _close_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            with contextlib.suppress(Exception):  # a broken connection is gone anyway
                keeper.close()
