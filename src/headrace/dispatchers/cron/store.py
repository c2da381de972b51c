"""How schedules lie in the engine: their definitions, and how far each has come."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Collection
from datetime import datetime

import msgspec

from headrace.dispatchers.cron.sealed_params import SealedParams
from headrace.errors import InvalidSetting, RecordConflict, UnknownSchedule
from headrace.model.schedules.schedule import KeptSchedule, ScheduleState
from headrace.model.views import Record, RecordChange
from headrace.suggest import similar_or_first
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.cron")

KIND = "schedule"
STATE_KIND = "schedule-state"
PAGE = 1_000
# An origin that names an owner. A program from before there were owners drops the field when it
# changes a schedule, but leaves the origin.
_OWNED = re.compile(r"(?:code(?: \S+)?|file .+\.ya?ml) of (\S+)")


class ScheduleRecords:
    """Reads and writes the records of schedules. A change is made only under the version read."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self._told: set[tuple[str, int]] = set()
        self.params = SealedParams(host)

    async def find(self, name: str) -> KeptSchedule | None:
        """One schedule, if it exists."""
        record = await self._host.engine.record_get(KIND, name)
        return None if record is None else _read_schedule(record)

    async def exists(self, name: str) -> bool:
        """Whether a schedule is stored, also one that cannot be read."""
        await self._host.open()
        return await self._host.engine.record_get(KIND, name) is not None

    async def versioned(self, name: str) -> tuple[KeptSchedule | None, int]:
        """One schedule, with the version that guards a change; 0 if it does not exist."""
        record = await self._host.engine.record_get(KIND, name)
        return (None, 0) if record is None else (_read_schedule(record), record.version)

    async def existing(self, name: str) -> tuple[KeptSchedule, int]:
        """The same, or an error that names the nearest ones."""
        await self._host.open()
        kept, version = await self.versioned(name)
        if kept is None:
            known = [each.schedule.name for each in await self.all()]
            shown = similar_or_first(name, known)
            raise UnknownSchedule(f'no schedule is called "{name}"; there are: {shown}')
        return kept, version

    async def all(self, after: str = "", limit: int | None = None) -> list[KeptSchedule]:
        """Every schedule that can be read, by name: after one, and at most so many."""
        await self._host.open()
        found = []
        for record in await self._list(KIND, after, limit):
            try:
                found.append(_read_schedule(record))
            except InvalidSetting as error:
                # Once: pages look twice a second.
                if (told := (record.key, record.version)) not in self._told:
                    self._told.add(told)
                    log.error("%s; it is left out", error)  # noqa: TRY400 - it is told whole
        return found

    async def put(self, kept: KeptSchedule, version: int) -> bool:
        """Write a schedule that was read as `version`. False if somebody else was faster."""
        body = msgspec.json.encode(self.params.sealed(kept))
        try:
            await self._host.engine.record_put(KIND, kept.schedule.name, body, version=version)
        except RecordConflict:
            return False
        return True

    async def remove(self, name: str) -> None:
        """Forget a schedule that somebody wants to be gone, also one that cannot be read; and how
        far it had come if that cannot be read. Raises `UnknownSchedule`.
        """
        await self._host.open()
        engine = self._host.engine
        if not await self.exists(name):
            await self.existing(name)
        await self.delete(name)
        try:
            await self.state(name)
        except InvalidSetting:
            await engine.record_delete(STATE_KIND, name)

    async def delete(self, name: str) -> None:
        """Forget a schedule, but not yet how far it had come."""
        await self._host.engine.record_delete(KIND, name)

    async def states(
        self, after: str = "", last: str | None = None
    ) -> dict[str, ScheduleState | InvalidSetting]:
        """How far every schedule has come, also those that were removed: those after a name, up to
        another. For one that cannot be read, why.
        """
        found: dict[str, ScheduleState | InvalidSetting] = {}
        for record in await self._list(STATE_KIND, after, last=last):
            try:
                found[record.key] = _read_state(record)
            except InvalidSetting as error:
                found[record.key] = error
        return found

    async def state(self, name: str) -> tuple[ScheduleState, int]:
        """How far a schedule has come, with the version that guards a change."""
        record = await self._host.engine.record_get(STATE_KIND, name)
        return (ScheduleState(), 0) if record is None else (_read_state(record), record.version)

    async def forget_states(self, existing: Collection[str], before: datetime) -> None:
        """Forget how far those had come that do not exist, and have done nothing since then."""
        for record in await self._list(STATE_KIND):
            if record.key not in existing and record.updated_at < before:
                # Unless it has come back at this moment.
                with contextlib.suppress(RecordConflict):
                    await self._host.engine.record_delete(
                        STATE_KIND, record.key, version=record.version
                    )

    def state_change(self, name: str, state: ScheduleState, version: int) -> RecordChange:
        """The change of a state that was read as `version`, for `engine.insert`."""
        return RecordChange(STATE_KIND, name, msgspec.json.encode(state), version)

    async def _list(
        self, kind: str, after: str = "", limit: int | None = None, last: str | None = None
    ) -> list[Record]:
        found: list[Record] = []
        size = PAGE if limit is None else min(limit, PAGE)
        while True:
            page = await self._host.engine.record_list(kind, after=after, limit=size)
            found += [each for each in page if last is None or each.key <= last]
            enough = limit is not None and len(found) >= limit
            if len(page) < size or enough or (last is not None and page[-1].key >= last):
                return found[:limit]
            after = page[-1].key


def _read_schedule(record: Record) -> KeptSchedule:
    try:
        kept = msgspec.json.decode(record.body, type=KeptSchedule)
        kept.schedule.checked()
    except (msgspec.DecodeError, InvalidSetting) as error:
        raise InvalidSetting(f'schedule "{record.key}" cannot be read: {error}') from None
    if kept.owner is None and (named := _OWNED.fullmatch(kept.origin)) is not None:
        return msgspec.structs.replace(kept, owner=named[1])
    return kept


def _read_state(record: Record) -> ScheduleState:
    try:
        return msgspec.json.decode(record.body, type=ScheduleState)
    except msgspec.DecodeError as error:
        raise InvalidSetting(
            f'the state of schedule "{record.key}" cannot be read: {error}; remove the schedule '
            f"(headrace schedules remove {record.key}) and add it again"
        ) from None
