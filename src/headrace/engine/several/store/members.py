"""All stores together: who has a job, and asking several of them at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.several.store.member import Member
from headrace.engine.several.store.routes import DEFAULT, Routes
from headrace.errors import EngineUnavailable, StoreUnavailable
from headrace.model.views import Finding

T = TypeVar("T")

# Jobs whose store is remembered. Others are looked for in all.
MOST_REMEMBERED = 50_000


class SeveralMembers:
    """What all groups of verbs use."""

    name = "several"

    def __init__(self, default: Member, others: Mapping[str, Member], *, clock: Clock) -> None:
        """`others` are the stores of patterns of queues; several patterns may have one store."""
        self.clock = clock
        self.default = default
        self._by_pattern = {**others, DEFAULT: default}
        self._routes = Routes(others)
        self.members = list(dict.fromkeys([default, *others.values()]))
        self._homes: OrderedDict[str, Member] = OrderedDict()

    def home_of(self, queue: str) -> Member:
        """Return the store that jobs of this queue go to."""
        return self._by_pattern[self._routes.pattern_of(queue)]

    @property
    def living(self) -> list[Member]:
        """Return the stores that answer, as far as is known."""
        return [each for each in self.members if each.away is None]

    @property
    def missing(self) -> tuple[Finding, ...]:
        """Return a finding for each store that does not answer."""
        found = (each.finding() for each in self.members)
        return tuple(each for each in found if each is not None)

    # --- who has a job

    def remember(self, member: Member, ids: Iterable[str | None]) -> None:
        """Note that these jobs are in this store: they never leave it."""
        homes = self._homes
        for job_id in ids:
            if job_id is not None:
                homes[job_id] = member
        while len(homes) > MOST_REMEMBERED:
            homes.popitem(last=False)

    def remembered(self, job_id: str) -> Member | None:
        """Return the store of a job, if it is known. That of one that is leased here always is."""
        home = self._homes.get(job_id)
        if home is None:
            home = next((each for each in self.members if job_id in each.held), None)
        return home

    async def locate(self, ids: Iterable[str]) -> dict[str, Member]:
        """Return the stores of these jobs; of unknown ones none. Raises `StoreUnavailable` if one
        may be in a store that does not answer.
        """
        found = {each: member for each in ids if (member := self.remembered(each)) is not None}
        unknown = [each for each in dict.fromkeys(ids) if each not in found]
        if not unknown:
            return found
        answers = await self.ask_all(lambda engine: engine.get(unknown))
        for member, jobs in answers.items():
            self.remember(member, [job.id for job in jobs])
            found |= {job.id: member for job in jobs}
        self.all_answered(answers, (each for each in unknown if each not in found))
        return found

    def all_answered(self, answers: Mapping[Member, object], left: Iterable[str]) -> None:
        """Raise `StoreUnavailable` if one of the jobs that are `left` may be in a store that is not
        among the answers.
        """
        missing = {each for each in self.members if each not in answers}
        for job_id in left if missing else ():
            home = self.remembered(job_id)
            if home is None or home in missing:
                away = next(iter(missing)) if home is None else home
                raise StoreUnavailable(
                    f"job {job_id} is in none of the stores that answer, and may be in one that "
                    f"does not: {away.shown}: {away.away}"
                )

    # --- asking several

    async def ask_all(
        self, call: Callable[[Engine], Awaitable[T]], among: Sequence[Member] | None = None
    ) -> dict[Member, T]:
        """Return the answers of those stores that answer, in their order. Raises
        `StoreUnavailable` if none does, and any other error of one.
        """
        return await self.ask_each(dict.fromkeys(self.members if among is None else among, call))

    async def ask_each(
        self, calls: Mapping[Member, Callable[[Engine], Awaitable[T]]]
    ) -> dict[Member, T]:
        """The same with another call for each."""
        if len(calls) == 1:
            [(member, call)] = calls.items()
            return {member: await member.ask_soon(call)}
        answers: dict[Member, T] = {}
        failure: EngineUnavailable | None = None
        tasks = [asyncio.ensure_future(member.ask_soon(call)) for member, call in calls.items()]
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            await _end(tasks)
        for member, task in zip(calls, tasks, strict=True):
            try:
                answers[member] = task.result()
            except StoreUnavailable as error:
                failure = error
        if failure is not None and not answers:
            raise failure
        return answers

    async def ask_homes(
        self, ids: Sequence[str], call: Callable[[Engine, list[str]], Awaitable[T]]
    ) -> dict[Member, T]:
        """Ask each store about its own jobs, and all of them about those whose store is not known.
        Raises `StoreUnavailable` if a store with one of these jobs does not answer.
        """
        shares = self.shares(ids)
        answers = await self.ask_shares(shares, call)
        for member, share in shares.items():
            if member not in answers and any(self.remembered(each) for each in share):
                raise member.unavailable(member.away or EngineUnavailable("no answer"))
        return answers

    async def ask_shares(
        self,
        shares: Mapping[Member, list[str]],
        call: Callable[[Engine, list[str]], Awaitable[T]],
    ) -> dict[Member, T]:
        """Ask each of these stores about its share."""
        return await self.ask_each(
            {member: _bound(call, share) for member, share in shares.items()}
        )

    def shares(self, ids: Sequence[str]) -> dict[Member, list[str]]:
        """Return which store is to be asked about which jobs, in their order."""
        found: dict[Member, list[str]] = {}
        for each in ids:
            home = self.remembered(each)
            for member in self.members if home is None else (home,):
                found.setdefault(member, []).append(each)
        return found


def _bound(
    call: Callable[[Engine, list[str]], Awaitable[T]], share: list[str]
) -> Callable[[Engine], Awaitable[T]]:
    return lambda engine: call(engine, share)


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Leave nothing running behind a call that was cancelled."""
    for task in tasks:
        if not task.done():
            task.cancel()
            with contextlib.suppress(BaseException):
                await task
