"""The records of destinations: read, changed one at a time, guarded by their versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from headrace.engine.bounded_reads import records_of
from headrace.engine.record_changes import change_record
from headrace.errors import InvalidSetting, UnknownDestination
from headrace.model.names import check_name
from headrace.model.views import Record
from headrace.publishing.destinations import Destination
from headrace.task.app_like import AppLike

KIND = "destination"
PAGE = 1_000

Change = Callable[[Destination | None], Destination]
_decoder = msgspec.json.Decoder(Destination)


class StoredDestination(msgspec.Struct, frozen=True):
    """A destination with the version of its record."""

    destination: Destination
    version: int


class DestinationRecords:
    """The destinations of a store."""

    def __init__(self, host: AppLike) -> None:
        self._host = host

    async def all(self) -> list[Destination]:
        """Return all of them, by name."""
        await self._host.open()
        records = await records_of(self._host.engine, KIND, page=PAGE)
        return [_decoder.decode(record.body) for record in records]

    async def find(self, name: str) -> StoredDestination | None:
        """Return one, or None."""
        await self._host.open()
        record = await self._host.engine.record_get(KIND, check_name("destination", name))
        if record is None:
            return None
        return StoredDestination(_decoder.decode(record.body), record.version)

    async def get(self, name: str) -> Destination:
        """Return one. Raises `UnknownDestination`."""
        found = await self.find(name)
        if found is None:
            raise _unknown(name)
        return found.destination

    async def change(self, name: str, change: Change) -> Destination:
        """Write what `change` makes of the present one; again if somebody else was first."""
        check_name("destination", name)
        await self._host.open()

        def changed(record: Record | None) -> tuple[Destination, bytes]:
            after = change(None if record is None else _decoder.decode(record.body))
            return after, msgspec.json.encode(after)

        busy = f"destination {name!r} is being changed by others; try again"
        return await change_record(self._host.engine, KIND, name, changed, busy=busy)

    async def update(self, name: str, change: Callable[[Destination], Destination]) -> Destination:
        """The same for one that has to exist. Raises `UnknownDestination`."""

        def existing(before: Destination | None) -> Destination:
            if before is None:
                raise _unknown(name)
            return change(before)

        return await self.change(name, existing)

    async def enable(self, name: str, enabled: bool, reason: str | None = None) -> Destination:
        """Let events go there, or not."""
        now = self._host.clock.utcnow()
        return await self.update(
            name,
            lambda before: msgspec.structs.replace(
                before, enabled=enabled, reason=reason, changed_at=now
            ),
        )

    async def remove(self, name: str) -> None:
        """Delete one. Raises `UnknownDestination`."""
        await self._host.open()
        if not await self._host.engine.record_delete(KIND, check_name("destination", name)):
            raise _unknown(name)

    async def apply(self, wanted: Iterable[Destination], origin: str) -> list[str]:
        """Store what a file says, and remove what it no longer says. Return the names that were
        added, changed or removed. Whether one is enabled stays as people have set it.
        """
        changed: list[str] = []
        declared = {each.name: each for each in wanted}
        there = {each.name: each for each in await self.all()}
        for name, each in declared.items():
            before = there.get(name)
            if before is not None and before.origin != origin:
                raise InvalidSetting(
                    f"destination {name!r} exists already and is not of {origin}; remove it first, "
                    "or give this one another name"
                )
            if before is None or not _same(before, each):
                await self.change(name, _replacing(each))
                changed.append(name)
        for name, each in there.items():
            if each.origin == origin and name not in declared:
                await self.remove(name)
                changed.append(name)
        return changed


def _replacing(wanted: Destination) -> Change:
    def change(before: Destination | None) -> Destination:
        if before is None:
            return wanted
        return msgspec.structs.replace(
            wanted,
            created_at=before.created_at,
            secrets=wanted.secrets or before.secrets,
            enabled=before.enabled,
            reason=before.reason,
        )

    return change


def _same(before: Destination, wanted: Destination) -> bool:
    return (before.kind, before.options, before.types, before.retries) == (
        wanted.kind,
        wanted.options,
        wanted.types,
        wanted.retries,
    ) and (not wanted.secrets or wanted.secrets == before.secrets)


def _unknown(name: str) -> UnknownDestination:
    return UnknownDestination(f"no destination is called {name!r}; see: headrace destinations list")
