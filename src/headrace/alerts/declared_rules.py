"""Rules that code and files declare, and what becomes of them in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.alerts.store import AlertRecords, KeptRule
from headrace.errors import InvalidSetting, MissingDriver
from headrace.model.alerts.rule import AlertRule, make_rule
from headrace.publishing.store import DestinationRecords
from headrace.task.app_like import AppLike

if TYPE_CHECKING:
    from headrace.alerts.file import AlertsFile

log = logging.getLogger("headrace.alerts")

CODE = "code"
RECEIVERS = "alerts file"
"""The origin of destinations that a file of alerts has."""


class RuleOfOtherOwner(InvalidSetting):
    """A rule of this name belongs to another service."""


class DeclaredAlerts:
    """What the code of an App declares. A server stores it when it starts, with the usual file."""

    def __init__(self, host: AppLike) -> None:
        self._host = host
        self.records = AlertRecords(host)
        self.rules: dict[str, AlertRule] = {}

    def declare(self, name: str, fields: dict[str, Any]) -> AlertRule:
        """Say in code when somebody is told."""
        rule = make_rule(name, fields)
        if name in self.rules:
            raise InvalidSetting(f'two alert rules are called "{name}"; give one another name')
        self.rules[name] = rule
        return rule

    @property
    def owner(self) -> str | None:
        """The name of the service whose rules these are, as for schedules."""
        return self._host.settings.schedules_owner

    async def store(self) -> None:
        """Store what code declares, and the usual file if there is one. What is wrong there is
        logged, and the rest is stored. What is declared no more is removed if the service has a
        name: otherwise it cannot be told from what another service declares.
        """
        reference = self._host.settings.app
        place = CODE if reference is None else f"{CODE} {reference}"
        if self.rules or self.owner is not None:
            await self.apply(list(self.rules.values()), place, remove=self.owner is not None)
        path = Path(self._host.settings.alerts)
        if not await asyncio.to_thread(path.exists):
            return
        from headrace.alerts.file import read_alerts  # noqa: PLC0415 - needs an extra

        try:
            file = await asyncio.to_thread(read_alerts, path, now=self._host.clock.utcnow())
        except (InvalidSetting, MissingDriver) as error:
            log.error("%s; no alert rule of it is stored", error)  # noqa: TRY400 - told whole
            return
        for problem in file.problems:
            log.error("%s; it is left out", problem)
        await self.apply_file(file, remove=self.owner is not None)

    async def apply_file(self, file: AlertsFile, *, remove: bool) -> list[str]:
        """Store the receivers and rules of a file; with `remove`, remove those that it had before
        and has no more. Return the names that were changed.
        """
        receivers = await self._apply_receivers(file, remove=remove)
        place, kept = f"file {file.path}", file.kept_rules
        return [*receivers, *await self.apply(file.rules, place, kept, remove=remove)]

    async def apply(
        self,
        rules: Sequence[AlertRule],
        place: str,
        kept: Collection[str] = (),
        *,
        remove: bool,
    ) -> list[str]:
        """Store the rules of one place; with `remove`, remove those that it had before and has no
        more, except those that are `kept`: they are there, but wrong. Return the names that were
        changed.
        """
        changed: list[str] = []
        there, _ = await self.records.rules()
        before = {each.rule.name: each for each in there}
        for rule in rules:
            try:
                made = await self.records.change(rule.name, self._declaration(rule, place))
            except RuleOfOtherOwner as error:
                log.error("%s", error)  # noqa: TRY400 - it is told whole
                continue
            if made != before.get(rule.name):
                changed.append(rule.name)
        declared = {each.name for each in rules} | set(kept)
        for name, each in before.items():
            if each.origin != place or each.owner != self.owner or name in declared:
                continue
            if remove:
                await self.records.remove(name)
                log.info("Alert rule %s is no longer declared: removed", name)
                changed.append(name)
            else:
                log.warning(
                    "Alert rule %s was declared in %s and is not any more, or by another service: "
                    "it stays. Remove it: headrace alerts remove %s. To have that done by itself, "
                    "give your service a name (HEADRACE_SCHEDULES_OWNER)",
                    *(name, place, name),
                )
        return changed

    def _declaration(self, rule: AlertRule, place: str) -> Callable[[KeptRule | None], KeptRule]:
        now, owner = self._host.clock.utcnow(), self.owner
        said: dict[str, Any] = {
            "rule": rule,
            "origin": place,
            "declared": rule,
            "owner": owner,
        }

        def change(before: KeptRule | None) -> KeptRule:
            if before is None:
                return KeptRule(**said, created_at=now, changed_at=now)
            if before.owner not in (None, owner):
                raise RuleOfOtherOwner(
                    f'alert rule "{rule.name}" of {place} is not stored: one of this name belongs '
                    f'to "{before.owner}" ({before.origin}); give this one another name'
                )
            if before.declared == rule and (before.origin, before.owner) == (place, owner):
                return before  # what people have changed by hand stays
            return msgspec.structs.replace(before, **said, changed_at=now)

        return change

    async def _apply_receivers(self, file: AlertsFile, *, remove: bool) -> list[str]:
        records = DestinationRecords(self._host)
        origin = RECEIVERS if self.owner is None else f"{RECEIVERS} of {self.owner}"
        there = {each.name: each for each in await records.all()}
        wanted = {}
        for each in file.receivers:
            if (before := there.get(each.name)) is not None and before.origin != origin:
                log.error(
                    "Receiver %s of %s is not stored: a destination of this name exists (%s)",
                    *(each.name, file.path, before.origin),
                )
            else:
                wanted[each.name] = msgspec.structs.replace(each, origin=origin)
        for name, stored in there.items():
            stays = name in file.kept_receivers or not remove
            if stored.origin == origin and stays:
                wanted.setdefault(name, stored)
        return await records.apply(wanted.values(), origin)
