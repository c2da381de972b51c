"""Notices of alerts: what a receiver is told."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from headrace.model.alerts.rule import Severity

NoticeStatus = Literal["firing", "repeated", "resolved", "test"]
ALERT_TYPE = "headrace.alert.v1"
"""The type of the event that receivers get."""


class AlertNotice(msgspec.Struct, kw_only=True, frozen=True):
    """What a receiver is told: the data of the event. `episode` is the same for all notices from
    the first to the resolution.
    """

    status: NoticeStatus
    rule: str
    kind: str
    subject: str
    severity: Severity
    detail: str
    remedy: str = ""
    summary: str = ""
    episode: str = ""
    since: datetime | None = None
    resolved_at: datetime | None = None
    number: int = 1

    @property
    def title(self) -> str:
        """One line: what it is about."""
        if self.status == "resolved":
            word = "resolved"
        elif self.status == "test":
            word = "test"
        else:
            word = self.severity
        return f"[{word}] {self.summary or self.detail}"

    @property
    def lines(self) -> list[str]:
        """What else there is to say, a line each."""
        told = [self.detail] if self.summary else []
        if self.status == "repeated":
            told.append(f"Told for the {self.number}. time.")
        if self.remedy and self.status != "resolved":
            told.append(self.remedy)
        if self.since is not None:
            told.append(f"Since {self.since:%Y-%m-%d %H:%M:%S} UTC.")
        if self.resolved_at is not None:
            told.append(f"Over at {self.resolved_at:%Y-%m-%d %H:%M:%S} UTC.")
        return [*told, f"Rule {self.rule} ({self.kind})."]
