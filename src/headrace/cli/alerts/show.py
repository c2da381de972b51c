"""How alerts and their rules are printed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.api_types.alerts import AlertRuleView, AlertView
from headrace.cli.formatting import shown_time, span
from headrace.cli.output import Columns, print_fields


def rule_state(rule: AlertRuleView) -> str:
    """Return how a rule is, in a few words."""
    if not rule.enabled:
        return "disabled"
    if rule.firing:
        words = f"{rule.firing} firing"
    else:
        words = f"{rule.waiting} waiting" if rule.waiting else "ok"
    return f"{words}, silenced" if rule.silences else words


def alert_columns(now: datetime) -> Columns[AlertView]:
    """Return the columns of a table of alerts."""

    def since(alert: AlertView) -> str | None:
        moment = alert.resolved_at or alert.since
        return None if moment is None else span((now - moment).total_seconds())

    return {
        "RULE": lambda each: each.rule,
        "SUBJECT": lambda each: each.subject,
        "STATE": lambda each: "resolved" if each.phase == "ok" else each.phase,
        ">SINCE": since,
        "TOLD": lambda each: ",".join(each.told) or None,
        "DETAIL": lambda each: each.detail,
    }


def show_rule(rule: AlertRuleView) -> None:
    """Print a rule."""
    empty: tuple[object, ...] = (None, "", [], 0)
    shown = {
        "above": rule.above,
        "free below": rule.free_below,
        "queues": ", ".join(rule.queues),
        "tasks": ", ".join(rule.tasks),
        "names": ", ".join(rule.names),
    }
    if rule.kind in ("failure_rate", "wait_p95"):
        shown |= {"by": rule.by, "window": span(rule.window), "least": rule.least}
    print_fields(
        [
            ("rule", rule.name),
            ("kind", rule.kind),
            ("state", rule_state(rule)),
            ("problem", rule.problem),
            ("severity", rule.severity),
            ("summary", rule.summary or None),
            *((name, value) for name, value in shown.items() if value not in empty),
            ("for", span(rule.for_) if rule.for_ else None),
            ("repeat", None if rule.repeat is None else span(rule.repeat)),
            ("to", ", ".join(rule.to)),
            ("origin", rule.origin or None),
            *(
                ("silenced", f"{each.subject or 'all'} until {shown_time(each.until)}{_why(each)}")
                for each in rule.silences
            ),
        ]
    )


def _why(silence: Any) -> str:
    by = f" by {silence.by}" if silence.by else ""
    return f"{by}: {silence.reason}" if silence.reason else by
