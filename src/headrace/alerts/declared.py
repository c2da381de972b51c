"""Rules that code and files declare, and what becomes of them in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.alerts.store import AlertRecords, KeptRule
from headrace.errors import InvalidSetting, MissingDriver
from headrace.model.alert import AlertRule, make_rule
from headrace.publishing.destinations import Destination
from headrace.publishing.store import DestinationRecords
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.alerts")

CODE = "code"
RECEIVERS = "alerts file"
"""The origin of destinations that a file of alerts has."""


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
    def origin(self) -> str:
        """Where the rules are declared that are in this program's code."""
        reference = self._host.settings.app
        return CODE if reference is None else f"{CODE} {reference}"

    async def store(self) -> None:
        """Store what code declares, and the usual file if there is one. What is wrong there is
        logged, and the rest is stored.
        """
        # Without a name, a rule that is gone cannot be told from one of another program.
        if self.rules or self.origin != CODE:
            await self.apply(list(self.rules.values()), self.origin)
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
        await self.apply_receivers(file.receivers, file.kept_receivers)
        await self.apply(file.rules, f"file {path}", file.kept_rules)

    async def apply(
        self, rules: Sequence[AlertRule], origin: str, kept: Collection[str] = ()
    ) -> list[str]:
        """Store the rules of one place, and remove those that it had before and has no more, except
        those that are `kept`: they are there, but wrong. Return the names that were changed.
        """
        changed: list[str] = []
        there, _ = await self.records.rules()
        before = {each.rule.name: each for each in there}
        for rule in rules:
            made = await self.records.change(rule.name, self._declaration(rule, origin))
            if made != before.get(rule.name):
                changed.append(rule.name)
        declared = {each.name for each in rules} | set(kept)
        for name, each in before.items():
            if each.origin == origin != CODE and name not in declared:
                await self.records.remove(name)
                log.info("Alert rule %s is no longer declared: removed", name)
                changed.append(name)
        return changed

    def _declaration(self, rule: AlertRule, origin: str) -> Callable[[KeptRule | None], KeptRule]:
        now = self._host.clock.utcnow()

        def change(before: KeptRule | None) -> KeptRule:
            if before is None:
                return KeptRule(
                    rule=rule, origin=origin, declared=rule, created_at=now, changed_at=now
                )
            if before.declared == rule and before.origin == origin:
                return before  # what people have changed by hand stays
            return msgspec.structs.replace(
                before, rule=rule, origin=origin, declared=rule, changed_at=now
            )

        return change

    async def apply_receivers(
        self, receivers: Sequence[Destination], kept: Collection[str] = ()
    ) -> list[str]:
        """The same for the receivers of a file."""
        records = DestinationRecords(self._host)
        there = {each.name: each for each in await records.all()}
        wrong = [there[name] for name in kept if name in there]
        wanted = [*receivers, *(each for each in wrong if each.origin == RECEIVERS)]
        return await records.apply(wanted, RECEIVERS)
