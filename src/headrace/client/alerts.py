"""Verbs for alerts: rules, what fires, silences, and tests of receivers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

import msgspec

from headrace.api_types.alerts import (
    AlertRuleOptions,
    AlertRuleRemoved,
    AlertRuleRequest,
    AlertRuleView,
    AlertView,
    SilenceEnded,
    SilenceRequest,
    SilenceView,
    UnsilenceRequest,
)
from headrace.client.base import BaseClient, path_to
from headrace.model.alerts.rule import make_rule
from headrace.model.job import Job


class AlertsApi(BaseClient):
    """A server, for keys of scope admin; reading needs scope read."""

    async def alerts(self) -> Sequence[AlertView]:
        """What fires, then what waits to, then what was over in the last day."""
        return await self._list("/alerts", "alerts", AlertView)

    async def alert_rules(self) -> Sequence[AlertRuleView]:
        """All rules, by name, with how many subjects they hold for now."""
        return await self._list("/alert-rules", "alert_rules", AlertRuleView)

    async def alert_rule(self, name: str) -> AlertRuleView:
        """One rule. Raises `UnknownAlertRule`."""
        return await self._get(_rule(name), AlertRuleView, "an alert rule")

    async def put_alert_rule(
        self,
        name: str,
        kind: str,
        to: Sequence[str] | str,
        **options: Unpack[AlertRuleOptions],
    ) -> AlertRuleView:
        """Add a rule, or change the one of this name."""
        receivers = to if isinstance(to, str) else list(to)
        rule = make_rule(name, {"kind": kind, "to": receivers, **options})
        fields = msgspec.to_builtins(rule)
        del fields["name"]
        asked = msgspec.convert(fields, AlertRuleRequest)
        return await self._send("PUT", _rule(name), AlertRuleView, asked, idempotent=True)

    async def remove_alert_rule(self, name: str) -> None:
        """Remove a rule. Who was told that it fires is told that it is over."""
        await self._send("DELETE", _rule(name), AlertRuleRemoved, None)

    async def silence_alert(
        self,
        rule: str,
        *,
        subject: str | None = None,
        duration: float | None = None,
        until: datetime | None = None,
        reason: str | None = None,
    ) -> SilenceView:
        """Tell nobody of a rule, or of one subject of it, for `duration` seconds or `until` a
        time. Who was told before is told when it is over; what still fires at the end is told then.
        """
        asked = SilenceRequest(subject=subject, duration=duration, until=until, reason=reason)
        return await self._send("POST", f"{_rule(rule)}/silence", SilenceView, asked)

    async def unsilence_alert(self, rule: str, *, subject: str | None = None) -> bool:
        """End a silence; return False if there was none. Raises `UnknownAlertRule`."""
        asked = UnsilenceRequest(subject=subject)
        ended = await self._send("POST", f"{_rule(rule)}/unsilence", SilenceEnded, asked)
        return ended.silenced

    async def test_receiver(self, name: str) -> Job:
        """Send a test alert to one receiver, and return the job that delivers it."""
        path = f"{path_to('destinations', 'destination', name)}/test-alert"
        return await self._change_job(path)


def _rule(name: str) -> str:
    return path_to("alert-rules", "rule", name)
