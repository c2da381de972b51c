"""Alerts and their rules, as the server and its clients exchange them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypedDict

import msgspec
from msgspec import Meta

from headrace.api_types.requests import REASON, Moment, Name, Text
from headrace.model.alerts.rule import (
    LONGEST_SUMMARY,
    LONGEST_WINDOW,
    MOST_PATTERNS,
    MOST_RECEIVERS,
    SHORTEST_REPEAT,
    SHORTEST_WINDOW,
    Phase,
    RuleKind,
    Severity,
)
from headrace.model.times import LONGEST_WAIT

Pattern = Annotated[str, Meta(min_length=1, max_length=128)]
Patterns = Annotated[list[Pattern], Meta(max_length=MOST_PATTERNS)]
Receivers = Annotated[list[Name], Meta(min_length=1, max_length=MOST_RECEIVERS)]
Amount = Annotated[float, Meta(ge=0, le=10**15)]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_WAIT)]


class AlertRuleOptions(TypedDict, total=False):
    """What may be said of a rule beside its kind and its receivers. See `AlertRule`."""

    above: float | str | None
    free_below: float | str | None
    window: float | str
    least: int
    by: Literal["queue", "task"]
    queues: list[str] | str
    tasks: list[str] | str
    names: list[str] | str
    for_: float | str
    repeat: float | str | None
    severity: Severity
    summary: str
    enabled: bool


class AlertRuleRequest(
    msgspec.Struct,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"for_": "for"},
):
    """When somebody is told, and who. Which of the other fields a rule takes depends on its kind;
    times are seconds.
    """

    kind: RuleKind
    to: Receivers
    above: Amount | None = None
    free_below: Amount | None = None
    window: Annotated[float, Meta(ge=SHORTEST_WINDOW, le=LONGEST_WINDOW)] = 300.0
    least: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    by: Literal["queue", "task"] = "queue"
    queues: Patterns = []
    tasks: Patterns = []
    names: Patterns = []
    for_: Seconds = 0.0
    repeat: Annotated[float, Meta(ge=SHORTEST_REPEAT, le=LONGEST_WAIT)] | None = None
    severity: Severity = "warning"
    summary: Annotated[str, Meta(max_length=LONGEST_SUMMARY)] = ""
    enabled: bool = True


class SilenceView(msgspec.Struct, kw_only=True):
    """Nothing is told of a rule until a time: about one subject, or about all (null)."""

    rule: str
    subject: str | None = None
    until: datetime
    at: datetime
    by: str | None = None
    reason: str | None = None


class AlertRuleView(msgspec.Struct, kw_only=True, rename={"for_": "for"}):
    """A rule, and how it is: `firing` and `waiting` are how many subjects it holds for. `problem`
    says why it cannot be evaluated, or who cannot be told.
    """

    name: str
    kind: str
    to: list[str]
    above: float | None = None
    free_below: float | None = None
    window: float = 300.0
    least: int = 20
    by: str = "queue"
    queues: list[str] = []
    tasks: list[str] = []
    names: list[str] = []
    for_: float = 0.0
    repeat: float | None = None
    severity: Severity = "warning"
    summary: str = ""
    enabled: bool = True
    origin: str = ""
    created_at: datetime | None = None
    changed_at: datetime | None = None
    firing: int = 0
    waiting: int = 0
    problem: str | None = None
    silences: list[SilenceView] = []


class AlertView(msgspec.Struct, kw_only=True):
    """An alert: a rule and what it holds for. `told` are the receivers that were told of this
    episode, `number` is how often; `silenced_until` is when they may be told again.
    """

    rule: str
    kind: str
    subject: str
    phase: Phase
    severity: Severity
    detail: str
    remedy: str = ""
    summary: str = ""
    episode: str = ""
    since: datetime | None = None
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    told: list[str] = []
    told_at: datetime | None = None
    number: int = 0
    silenced_until: datetime | None = None


class SilenceRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Until when, or for how many seconds, nothing is told: one of both. Without a subject nothing
    at all is told of the rule.
    """

    subject: Text | None = None
    until: Moment | None = None
    duration: Annotated[float, Meta(gt=0, le=LONGEST_WAIT)] | None = msgspec.field(
        name="for", default=None
    )
    reason: Annotated[str, Meta(pattern=REASON)] | None = None


class UnsilenceRequest(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which silence ends: that of a subject, or that of the whole rule."""

    subject: Text | None = None


class SilenceEnded(msgspec.Struct):
    """The rule that is told of again; not `silenced` before if there was no such silence."""

    rule: str
    subject: str | None
    silenced: bool


class AlertRuleRemoved(msgspec.Struct):
    """The rule that is gone."""

    name: Name
