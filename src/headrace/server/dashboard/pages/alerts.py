"""Alerts: what fires, what was over lately, the rules, and who is told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headrace.api_types.alerts import AlertRuleView, AlertView
from headrace.api_types.publishing import DestinationView
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.monitor.cached_reads import CachedReads
from headrace.publishing.tasks import ALERT
from headrace.server.dashboard.actions.alerts import SPANS
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.service import Service

FRESH_SECONDS = 1.0
MOST_OVER = 20


class AlertsSeen(msgspec.Struct, frozen=True):
    """What the page shows, read at once. `undelivered` are deliveries that failed for good."""

    alerts: Sequence[AlertView]
    rules: Sequence[AlertRuleView]
    receivers: Sequence[DestinationView]
    undelivered: int


class AlertReads:
    """One of each server: everybody who looks shares a read."""

    def __init__(self, service: Service) -> None:
        self._app = service.app
        self._kept: CachedReads[AlertsSeen] = CachedReads(FRESH_SECONDS)

    def forget(self) -> None:
        """Read anew for the next who looks."""
        self._kept.forget()

    async def get(self) -> AlertsSeen:
        """Return what is shown, a second old at most."""
        return await self._kept.get((), self._read)

    async def _read(self) -> AlertsSeen:
        app = self._app
        rules = await app.alert_rules()
        named = {each for rule in rules for each in rule.to}
        failed = JobFilter(tasks=(ALERT,), statuses=(Status.FAILED, Status.TIMEOUT))
        return AlertsSeen(
            alerts=await app.alerts(),
            rules=rules,
            receivers=[each for each in await app.destinations() if each.name in named],
            undelivered=(await app.engine.count_jobs(failed)).count if rules else 0,
        )


@page("/alerts", title="Alerts", key="r")
async def alerts(visit: Visit) -> Shown:
    """Everything here is read once for all who look."""
    visit.caller.check_unrestricted("alerts")
    seen = await visit.service.part(AlertReads).get()
    return Shown(
        "system/alerts.html",
        firing=[each for each in seen.alerts if each.phase == "firing"],
        waiting=[each for each in seen.alerts if each.phase == "waiting"],
        over=[each for each in seen.alerts if each.phase == "ok"][:MOST_OVER],
        rules=seen.rules,
        receivers=seen.receivers,
        undelivered=seen.undelivered,
        undelivered_link=visit.url("/jobs", task=ALERT, status=["failed", "timeout"]),
        spans=SPANS,
    )
