"""Alerts and rules as people see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from headrace.alerts.evaluate import no_receiver
from headrace.alerts.state import AlertState
from headrace.alerts.store import AlertRecords, KeptRule, Silence
from headrace.api_types.alerts import AlertRuleView, AlertView, SilenceView
from headrace.publishing.store import DestinationRecords
from headrace.task.app_like import AppLike

ORDER = ("firing", "waiting", "ok")


class AlertViews:
    """What people see of the alerts of one store. `problems` are those that an evaluator in this
    process has found.
    """

    def __init__(self, host: AppLike, problems: Mapping[str, str] | None = None) -> None:
        self._host = host
        self._problems = problems or {}
        self.records = AlertRecords(host)

    async def alerts(self) -> list[AlertView]:
        """Return what fires, then what waits, then what was over in the last day."""
        silences = await self.silences()
        states = [each.value for each in (await self.records.states()).values()]
        shown = [each for each in states if each.phase != "ok" or each.resolved_at is not None]
        shown.sort(key=lambda each: (ORDER.index(each.phase), each.rule, each.subject))
        return [_alert(each, silences) for each in shown]

    async def rules(self) -> list[AlertRuleView]:
        """Return every rule, by name; of one that cannot be read, why."""
        kept, broken = await self.records.rules()
        states = [each.value for each in (await self.records.states()).values()]
        silences = await self.silences()
        receivers = {each.name for each in await DestinationRecords(self._host).all()}
        found = [self._rule(each, states, silences, receivers) for each in kept]
        found += [
            AlertRuleView(name=name, kind="unknown", to=[], enabled=False, problem=problem)
            for name, problem in broken.items()
        ]
        return sorted(found, key=lambda each: each.name)

    async def rule(self, name: str) -> AlertRuleView:
        """Return one rule. Raises `UnknownAlertRule`."""
        await self.records.existing(name)
        return next(each for each in await self.rules() if each.name == name)

    async def silences(self) -> list[Silence]:
        """Return the silences that are not over."""
        now = self._host.clock.utcnow()
        return [each for each in await self.records.silences() if each.until > now]

    def _rule(
        self,
        kept: KeptRule,
        states: Sequence[AlertState],
        silences: Sequence[Silence],
        receivers: Iterable[str],
    ) -> AlertRuleView:
        rule = kept.rule
        phases = [each.phase for each in states if each.rule == rule.name]
        missing = [each for each in rule.to if each not in receivers]
        fields = msgspec.structs.asdict(rule)
        for name in ("to", "queues", "tasks", "names"):
            fields[name] = list(fields[name])
        return AlertRuleView(
            **fields,
            origin=kept.origin,
            created_at=kept.created_at,
            changed_at=kept.changed_at,
            firing=phases.count("firing"),
            waiting=phases.count("waiting"),
            problem=no_receiver(missing) if missing else self._problems.get(rule.name),
            silences=[silence_view(each) for each in silences if each.rule == rule.name],
        )


def silence_view(silence: Silence) -> SilenceView:
    """Return a silence as people see it."""
    return SilenceView(**msgspec.structs.asdict(silence))


def _alert(state: AlertState, silences: Sequence[Silence]) -> AlertView:
    fields = msgspec.structs.asdict(state)
    del fields["facts_at"]
    fields["told"] = list(state.told)
    return AlertView(**fields, silenced_until=_silenced(state, silences))


def _silenced(state: AlertState, silences: Sequence[Silence]) -> datetime | None:
    until = [
        each.until
        for each in silences
        if each.rule == state.rule and each.subject in (None, state.subject)
    ]
    return max(until, default=None)
