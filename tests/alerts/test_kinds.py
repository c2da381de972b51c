"""Each kind is told once and resolved once, however many servers evaluate."""

from __future__ import annotations

import pytest

from headrace.model.alerts import rule
from headrace.model.status import Status
from tests.alerts.conftest import Alerts
from tests.alerts.provoke import KINDS


def test_every_kind_is_provoked() -> None:
    assert set(KINDS) == set(rule.KINDS)


@pytest.mark.parametrize("kind", KINDS)
async def test_it_is_told_once_and_resolved_once(alerts: Alerts, kind: str) -> None:
    provoked = KINDS[kind]
    await alerts.rule(kind=kind, severity="critical", **provoked.rule)
    assert await alerts.told() == []
    await provoked.provoke(alerts)
    assert await alerts.told() == ["firing"]
    data = alerts.events[0]["data"]
    assert provoked.says in data["detail"]
    assert (data["rule"], data["kind"], data["subject"]) == ("rule", kind, provoked.subject)
    assert data["severity"] == "critical"
    # It goes on, and nobody hears of it again.
    assert await alerts.told() == ["firing"]
    [shown] = await alerts.app.alerts()
    assert (shown.phase, shown.told, shown.number) == ("firing", ["ops"], 1)
    await provoked.mend(alerts)
    assert await alerts.told() == ["firing", "resolved"]
    assert await alerts.told() == ["firing", "resolved"]
    first, last = (each["data"] for each in alerts.events)
    assert first["episode"] == last["episode"]
    assert [each.status for each in await alerts.jobs()] == [Status.COMPLETED] * 2
    [shown] = await alerts.app.alerts()
    assert (shown.phase, shown.resolved_at is not None) == ("ok", True)
