"""An exchange with several stores: outcomes go to the store of their job, claims are divided.

What holds, whatever becomes of one of the stores:

* The reply comes when the stores have answered, or `PATIENCE` after the first of them: what a slow
  one leases then is handed over like a pushed job (`on_jobs`). Nothing more is asked of it until it
  has answered, and the places that it may fill count as taken.
* An outcome leaves the worker when its store has recorded it, or when it is a debt of that store
  (`Debts`), which is paid before anything else is asked of it. If no store answers, the call
  raises, and all outcomes are still the caller's.
* A claim whose reply is lost is found again: when the store answers, workers are told to look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from headrace.engine.several.claims import Share, fair_shares
from headrace.engine.several.families import kept_together
from headrace.engine.several.signals import Signals
from headrace.engine.several.store.member import Member, monotonic
from headrace.engine.several.upkeep import soonest
from headrace.errors import EngineUnavailable, StoreUnavailable
from headrace.model.outcome import Settlement
from headrace.model.views import Exchange

PATIENCE = 0.1
NOTHING = Exchange((), [])
NO_PLACES = Share(0, None)


class Round(msgspec.Struct, kw_only=True):
    """One exchange: the outcomes and the shares of the claim, by store, and what came of it."""

    outcomes: dict[Member, list[Settlement]]
    shares: dict[Member, Share]
    worker_id: str | None
    queues: Sequence[str] | None
    replies: dict[Member, Exchange] = {}
    # Those that did not answer, and those whose outcomes are recorded, or owed to them.
    failed: dict[Member, StoreUnavailable] = {}
    taken: set[Member] = set()


class Exchanging(Signals):
    """Settling and claiming."""

    _turn = 0
    # Attempts whose outcome is recorded or owed although the call with it raised.
    _recorded: set[tuple[str, int]]

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        *,
        worker_id: str | None = None,
        queues: Sequence[str] | None = None,
        limit: int = 0,
        free: int | None = None,
    ) -> Exchange:
        """Record outcomes, each in the store of its job, then lease jobs of all stores."""
        outcomes, unknown = await self._by_store(settlements)
        shares = {} if worker_id is None else self._shares(worker_id, limit, free)
        this = Round(outcomes=outcomes, shares=shares, worker_id=worker_id, queues=queues)
        asked = list(dict.fromkeys([*outcomes, *shares]))
        if not self.living and (asked or worker_id is not None):
            away = self.members[0]
            raise away.unavailable(away.away or EngineUnavailable("no answer"))
        ready = [each for each in asked if each.away is None and each.late is None]
        for member in asked:
            if member not in ready:
                member.debts.add(outcomes.get(member, []))
        try:
            await self._ask(this, ready)
            self._check_living(this)
            if worker_id is not None and limit > 0:
                await self._fill(this, limit, free)
        except Exception:
            # The caller sends all outcomes again: those that are recorded or owed are left out.
            for member in asked:
                if member not in ready or member in this.taken or member.late is not None:
                    done = outcomes.get(member, [])
                    self._recorded.update((each.job_id, each.token) for each in done)
            # What others have leased is not lost with the error of one.
            for reply in this.replies.values():
                if reply.jobs and worker_id is not None:
                    self.hand_over(worker_id, reply.jobs)
            raise
        self._recorded.difference_update((each.job_id, each.token) for each in settlements)
        jobs = [job for reply in this.replies.values() for job in reply.jobs]
        if sum(bool(reply.jobs) for reply in this.replies.values()) > 1:
            jobs.sort(key=lambda job: -job.priority)
        refused = [each for reply in this.replies.values() for each in reply.refused]
        for member in self.members:
            refused += member.debts.take_refused()
        next_in = soonest(reply.next_in for reply in this.replies.values())
        return Exchange((*unknown, *refused), jobs, next_in)

    def _check_living(self, this: Round) -> None:
        if this.failed and not self.living:
            raise next(iter(this.failed.values()))

    async def _by_store(
        self, settlements: Sequence[Settlement]
    ) -> tuple[dict[Member, list[Settlement]], list[str]]:
        """Return the outcomes by the store of their job, and the jobs that are in none."""
        found: dict[Member, list[Settlement]] = {}
        unknown: list[str] = []
        if elsewhere := [each.job_id for each in settlements if not self.remembered(each.job_id)]:
            await self.locate(elsewhere)
        for each in settlements:
            if self._recorded and (each.job_id, each.token) in self._recorded:
                continue  # until a call has succeeded: this one may be repeated, too
            member = self.remembered(each.job_id)
            if member is None:
                unknown.append(each.job_id)
            else:
                kept = kept_together(self, member, each) if each.follow else each
                found.setdefault(member, []).append(kept)
        return found, unknown

    def _shares(self, worker_id: str, limit: int, free: int | None) -> dict[Member, Share]:
        ready = [
            each
            for each in self.living
            if each.late is None and self.their_id(each, worker_id) is not None
        ]
        if limit <= 0:
            return dict.fromkeys(ready, NO_PLACES)
        left = max(limit - self._coming(), 0)
        self._turn += 1
        free = None if free is None else min(free, left)
        shares = fair_shares(ready, left, free, turn=self._turn, now=monotonic())
        return {member: share for member, share in shares.items() if share.limit > 0}

    def _coming(self) -> int:
        """How many jobs may still come from stores that were not waited for."""
        return sum(each.late_share for each in self.members if each.late is not None)

    async def _ask(self, this: Round, members: Sequence[Member]) -> None:
        if len(members) == 1:
            [member] = members
            try:
                this.replies[member] = await self._one(this, member)
            except StoreUnavailable as away:
                this.failed[member] = away
            return
        tasks = {member: asyncio.ensure_future(self._one(this, member)) for member in members}
        try:
            await self._wait(list(tasks.values()))
        except BaseException:
            for task in tasks.values():
                task.cancel()
            raise
        error: BaseException | None = None
        for member, task in tasks.items():
            if not task.done():
                self._not_waited_for(this, member, task)
                continue
            try:
                this.replies[member] = task.result()
            except StoreUnavailable as away:
                this.failed[member] = away
            except Exception as other:
                error = other
        if error is not None:
            raise error

    async def _wait(self, tasks: list[asyncio.Task[Exchange]]) -> None:
        if not tasks:
            return
        if not self.takes_jobs:
            await asyncio.wait(tasks)
            return
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if pending:
            await asyncio.wait(pending, timeout=PATIENCE)

    async def _one(self, this: Round, member: Member) -> Exchange:
        """Exchange with one store, and note what it has leased."""
        outcomes, share = this.outcomes.get(member, []), this.shares.get(member)
        ours = this.worker_id
        theirs = None if ours is None or share is None else self.their_id(member, ours)
        share = share or NO_PLACES
        member.empty_since = None
        try:
            reply = await member.ask(
                lambda engine: engine.exchange(
                    outcomes,
                    worker_id=theirs,
                    queues=this.queues,
                    limit=share.limit,
                    free=share.free,
                )
            )
        except StoreUnavailable:
            member.debts.add(outcomes)
            this.taken.add(member)
            raise
        this.taken.add(member)
        member.settled(outcomes)
        for each in outcomes:
            if each.follow:
                self.remember(member, [job.id for job in each.follow])
        if theirs is not None and ours is not None:
            self.leased(member, ours, reply.jobs)
            if len(reply.jobs) < share.limit:
                member.empty_since = monotonic()
        return reply

    async def _fill(self, this: Round, limit: int, free: int | None) -> None:
        """Where one store had fewer jobs than its share, ask those that may have more."""
        for member in self.living:
            reply, share = this.replies.get(member), this.shares.get(member, NO_PLACES)
            left = limit - self._coming() - sum(len(each.jobs) for each in this.replies.values())
            more = reply is None or len(reply.jobs) >= share.limit
            if left <= 0 or not more or member.late is not None or member in this.failed:
                continue
            if this.worker_id is None or self.their_id(member, this.worker_id) is None:
                continue
            if free is not None:
                used = (
                    min(own.free or 0, len(this.replies[each].jobs))
                    for each, own in this.shares.items()
                    if each in this.replies
                )
                own_free: int | None = max(free - sum(used), 0)
            else:
                own_free = None
            extra = Round(
                outcomes={}, shares={member: Share(left, own_free)},
                worker_id=this.worker_id, queues=this.queues,
            )  # fmt: skip
            await self._ask(extra, [member])
            again = extra.replies.get(member, NOTHING)
            before = reply or NOTHING
            this.replies[member] = Exchange(
                (*before.refused, *again.refused),
                before.jobs + again.jobs,
                soonest((before.next_in, again.next_in)),
            )

    def _not_waited_for(self, this: Round, member: Member, task: asyncio.Task[Exchange]) -> None:
        member.late_share = this.shares.get(member, NO_PLACES).limit
        member.debts.sent_late(this.outcomes.get(member, []))
        member.late = asyncio.get_running_loop().create_task(self._late(this, member, task))

    async def _late(self, this: Round, member: Member, task: asyncio.Task[Exchange]) -> None:
        """Take what a store that was not waited for has answered."""
        outcomes = this.outcomes.get(member, [])
        try:
            reply = await task
        except StoreUnavailable:
            pass  # what it could not record is owed now; workers are told when it is back
        except Exception:
            member.debts.still_owed(outcomes)
            self.hand_over("", ())
        else:
            member.debts.paid_late(outcomes, reply.refused)
            if reply.jobs and this.worker_id is not None:
                self.hand_over(this.worker_id, reply.jobs)
        try:
            if member.away is None:
                await member.settle_debts()
        except EngineUnavailable as error:
            member.lost(error)
        finally:
            member.late = None
            member.late_share = 0
        for listener in list(self._listeners):
            listener.on_work()
