"""Opening, closing, migrating and checking all stores."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from headrace.engine.base import Engine
from headrace.engine.several.store.member import Member
from headrace.engine.several.store.members import SeveralMembers
from headrace.errors import EngineRefused, EngineUnavailable, StoreReplaced, StoreUnavailable
from headrace.model.views import EngineReport, Finding, SchemaState

T = TypeVar("T")

# So many lanes of each store are looked at for queues that were moved.
MOST_LANES = 1_000


class Lifecycle(SeveralMembers):
    """Opening, closing and looking after the stores."""

    async def open(self) -> None:
        """Open all. One whose server is away is opened as soon as it answers; if all are, or if one
        cannot be used as it is, this raises.
        """
        members = [each for each in self.members if not each.opened]
        found = await asyncio.gather(
            *(each.engine.open() for each in members), return_exceptions=True
        )
        away: list[tuple[Member, EngineUnavailable]] = []
        for member, error in zip(members, found, strict=True):
            if error is None:
                member.opened = True
            elif isinstance(error, EngineRefused | StoreReplaced) or not isinstance(
                error, EngineUnavailable
            ):
                await self.close()
                raise _naming(member, error)
            else:
                away.append((member, error))
        if away and len(away) == len(self.members):
            member, error = away[0]
            raise member.unavailable(error) from error
        for member, error in away:
            member.lost(error)

    async def close(self) -> None:
        """Close all, one that hangs does not keep the others open."""
        await asyncio.gather(*(each.close() for each in self.members))
        for each in self.members:
            each.opened = False
            each.away = each.since = None

    async def schema(self) -> SchemaState:
        """Return the schemas together: what is pending in any of them."""
        found = await self._of_each(lambda engine: engine.schema())
        return SchemaState(
            version=min(each.version for each in found.values()),
            min_program=max(each.min_program for each in found.values()),
            known=min(each.known for each in found.values()),
            pending=tuple(
                f"{member.name}: {name}" for member, each in found.items() for name in each.pending
            ),
            script="\n".join(
                f"-- {member.shown}\n{each.script}" for member, each in found.items() if each.script
            ),
        )

    async def migrate(self) -> None:
        """Bring the schemas of all stores up to date."""
        await self._of_each(lambda engine: engine.migrate())

    async def _of_each(self, call: Callable[[Engine], Awaitable[T]]) -> dict[Member, T]:
        found: dict[Member, T] = {}
        for member in self.members:
            try:
                found[member] = await call(member.engine)
            except EngineUnavailable as error:
                raise member.unavailable(error) from error
        return found

    async def report(self) -> EngineReport:
        """Return what the stores say, with a finding for each that does not answer."""
        found = await self.ask_all(lambda engine: engine.report())
        versions = [
            f"{each.server_version} ({member.name}: {each.engine})"
            for member, each in found.items()
        ]
        default = found.get(self.default)
        return EngineReport(
            engine=self.name,
            server_version=", ".join(versions),
            schema_version=min(each.schema_version for each in found.values()),
            clock_skew=max((each.clock_skew for each in found.values()), key=abs),
            findings=[
                *(_of(member, each) for member, one in found.items() for each in one.findings),
                *await self._moved_lanes(),
                *self.missing,
            ],
            space=None if default is None else default.space,
        )

    async def _moved_lanes(self) -> list[Finding]:
        """Return a finding for each queue with lanes in a store that its new jobs do not go to:
        such jobs are refused, so the queue was moved, or another process has other settings.
        """
        lanes = await self.ask_all(lambda engine: engine.lanes(limit=MOST_LANES))
        return [
            Finding(
                "warning",
                "store",
                f"queue {queue!r} has lanes in {member.shown}, but its new jobs go to "
                f"{self.home_of(queue).shown}: until the former are done, the width, the order and "
                "the rate of a lane count in each of the two",
                "Give all processes the same HEADRACE_STORES; if the queue was moved, let the old "
                "jobs end.",
                kind="engine.moved",
                name=queue,
            )
            for member, found in lanes.items()
            for queue in sorted({each.queue for each in found if each.waiting or each.used})
            if self.home_of(queue) is not member
        ]

    async def audit(self) -> list[Finding]:
        """Check the invariants of each store that answers."""
        found: list[Finding] = []
        for member in self.living:
            found += [_of(member, each) for each in await member.ask(lambda engine: engine.audit())]
        return found


def _of(member: Member, finding: Finding) -> Finding:
    told = f"{finding.detail} ({member.name})"
    return msgspec.structs.replace(finding, detail=told, name=finding.name or member.name)


def _naming(member: Member, error: BaseException) -> BaseException:
    error.add_note(f"this is {member.shown}")
    if isinstance(error, EngineUnavailable) and not isinstance(error, StoreUnavailable):
        return type(error)(f"{member.shown}: {error}")
    return error
