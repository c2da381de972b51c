"""The notice of an alert that is in an event."""

from __future__ import annotations

import msgspec

from headrace.model.alerts.notice import ALERT_TYPE, AlertNotice
from headrace.publishing.events import PublishedEvent

_decoder = msgspec.json.Decoder(AlertNotice)


def notice_of(event: PublishedEvent) -> AlertNotice:
    """Return the notice; for another event, such as a test of the destination, one about it."""
    if event.type == ALERT_TYPE:
        return _decoder.decode(event.data)
    return AlertNotice(
        status="test",
        rule="none",
        kind="test",
        subject="",
        severity="info",
        detail=f"event {event.type}",
    )
