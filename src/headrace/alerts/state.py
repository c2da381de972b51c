"""How an alert goes on: ok, waiting, firing, ok. No I/O.

One record for each rule and subject. A change of it is written only under the version that was
read, in one step with the jobs that deliver what is to be told. So for each notice of an episode
(firing, each repetition, resolved) and each receiver exactly one job exists, however many servers
evaluate and whichever of them dies when.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.model.alerts.notice import AlertNotice, NoticeStatus
from headrace.model.alerts.rule import AlertRule, Phase, Severity
from headrace.model.ids import new_id
from headrace.model.times import moment_of
from headrace.publishing.events import delivery_id


class AlertCondition(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule has found about one subject. It holds."""

    subject: str
    detail: str
    remedy: str = ""


class AlertState(msgspec.Struct, frozen=True, kw_only=True):
    """An alert as it is stored. `since` is when the condition was first seen to hold, `facts_at`
    a time when the facts that moved it last had been read, in seconds of the engine. `told` are
    the receivers that know of this episode, and `number` how often they were told.
    """

    rule: str
    kind: str
    subject: str
    phase: Phase = "ok"
    episode: str = ""
    severity: Severity = "warning"
    detail: str = ""
    remedy: str = ""
    summary: str = ""
    facts_at: float = 0.0
    since: datetime | None = None
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    told: tuple[str, ...] = ()
    told_at: datetime | None = None
    number: int = 0

    def event_id(self, status: NoticeStatus) -> str:
        """Return the id of the event of a notice: always the same for the same notice."""
        return delivery_id(self.episode, f"{status}/{self.number}")

    def notice(self, status: NoticeStatus) -> AlertNotice:
        """Return what receivers are told."""
        return AlertNotice(
            status=status,
            rule=self.rule,
            kind=self.kind,
            subject=self.subject,
            severity=self.severity,
            detail=self.detail,
            remedy=self.remedy,
            summary=self.summary,
            episode=self.episode,
            since=self.since,
            resolved_at=self.resolved_at,
            number=max(self.number, 1),
        )


class AlertStep(msgspec.Struct, frozen=True):
    """What becomes of an alert: its new state, and what is to be told to whom."""

    state: AlertState
    status: NoticeStatus | None = None
    receivers: tuple[str, ...] = ()


def step(
    rule: AlertRule,
    before: AlertState | None,
    condition: AlertCondition | None,
    *,
    read_from: float,
    read_by: float,
    now: float,
    silenced: bool,
    known: frozenset[str],
) -> AlertStep | None:
    """Return what becomes of an alert, None if it stays as it is.

    The facts were read some time between `read_from` and `read_by`. Only those whose reading began
    when that of the facts that moved the alert last was over can say otherwise: of others nobody
    knows which are the newer ones. `known` are the receivers that exist; others are told when they
    do.
    """
    fresh = before is None or read_from > before.facts_at
    active = before is not None and before.phase != "ok"
    holds = condition is not None if fresh else active
    if not holds:
        return over(before, read_by, now) if before is not None and active else None
    moment = moment_of(now)
    if before is not None and active:
        state = before
    elif condition is not None:
        state = _begun(rule, condition.subject, read_by, moment)
    else:
        return None
    if condition is not None and fresh:
        words = {"detail": condition.detail, "remedy": condition.remedy}
        state = msgspec.structs.replace(
            state, **words, severity=rule.severity, summary=rule.summary
        )
    moved = state.phase == "waiting" and now - _seconds(state.since) >= rule.for_
    if moved:
        state = msgspec.structs.replace(
            state, phase="firing", fired_at=moment, facts_at=max(read_by, state.facts_at)
        )
    receivers = tuple(each for each in dict.fromkeys(rule.to) if each in known)
    if state.phase == "firing" and not silenced and receivers and _due(rule, state, now):
        status: NoticeStatus = "repeated" if state.number else "firing"
        told = tuple(dict.fromkeys((*state.told, *receivers)))
        state = msgspec.structs.replace(state, told=told, told_at=moment, number=state.number + 1)
        return AlertStep(state, status, receivers)
    return AlertStep(state) if moved or not active else None


def _begun(rule: AlertRule, subject: str, facts_at: float, now: datetime) -> AlertState:
    return AlertState(
        rule=rule.name,
        kind=rule.kind,
        subject=subject,
        phase="waiting",
        episode=new_id(),
        since=now,
        facts_at=facts_at,
    )


def over(before: AlertState, facts_at: float, now: float) -> AlertStep:
    """Return the end of an alert that was waiting or firing."""
    state = msgspec.structs.replace(
        before,
        phase="ok",
        facts_at=max(facts_at, before.facts_at),
        resolved_at=moment_of(now) if before.phase == "firing" else None,
    )
    # Who knows of it is told that it is over, also while it is silenced.
    return AlertStep(state, "resolved" if before.told else None, before.told)


def _due(rule: AlertRule, state: AlertState, now: float) -> bool:
    if state.told_at is None:
        return True
    return rule.repeat is not None and now - _seconds(state.told_at) >= rule.repeat


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
