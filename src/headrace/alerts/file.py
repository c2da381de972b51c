"""`config/alerts.yaml`: receivers and rules. What is wrong is said with the file and the line.

receivers:
  ops:
    kind: slack
    options: {url: "${SLACK_URL}"}
rules:
  mail-is-late:
    kind: queue_age
    queues: [mail]
    above: 10m
    for: 2m
    repeat: 4h
    severity: critical
    to: [ops]
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.alerts.declared_rules import RECEIVERS
from headrace.dispatchers.events.config import QueueConfig, fill_variables, load_document
from headrace.errors import InvalidInput, InvalidSetting
from headrace.model.alerts.notice import ALERT_TYPE
from headrace.model.alerts.rule import AlertRule, make_rule
from headrace.publishing.destinations import Destination
from headrace.publishing.file import make_one
from headrace.suggest import did_you_mean

if TYPE_CHECKING:
    from headrace.config_files import Document

PARTS = ("receivers", "rules")


class AlertsFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says: what can be used, and what is wrong with the rest. `kept_rules` and
    `kept_receivers` are in the file, but wrong.
    """

    path: Path
    rules: list[AlertRule]
    receivers: list[Destination]
    problems: list[str]
    kept_rules: list[str] = []
    kept_receivers: list[str] = []


def read_alerts(
    path: Path, *, now: datetime, environment: Mapping[str, str] | None = None
) -> AlertsFile:
    """Read a file. `${NAME}` stands for a variable of the environment, so that no secret need be
    in it. Raises `InvalidSetting` if nothing of it can be used.
    """
    document = load_document(path, example="receivers and rules", extra="workflows")
    content = {} if document.value is None else document.value
    if not isinstance(content, dict):
        raise InvalidSetting(f"{path} must have receivers: and rules: with a name for each")
    problems = [
        f'{path} has no part "{name}"; {did_you_mean(name, PARTS)} ({document.at((name,))})'
        for name in content
        if name not in PARTS
    ]
    variables = os.environ if environment is None else environment
    receivers, wrong_receivers = _receivers(document, problems, variables, now)
    rules, wrong_rules = _rules(document, problems)
    return AlertsFile(
        path=path,
        rules=rules,
        receivers=receivers,
        problems=problems,
        kept_rules=wrong_rules,
        kept_receivers=wrong_receivers,
    )


def _receivers(
    document: Document, problems: list[str], variables: Mapping[str, str], now: datetime
) -> tuple[list[Destination], list[str]]:
    lines = {".".join(map(str, place)): line for place, line in document.lines.items() if place}
    where = QueueConfig(adapter="", path=document.name, lines=lines)
    found, wrong = [], []
    for name, body in _named(document, "receivers", problems).items():
        place = f"receivers.{name}"
        try:
            filled = fill_variables(body, place, where, variables)
            if isinstance(filled, dict):
                filled.setdefault("types", [ALERT_TYPE])
            found.append(make_one(name, filled, where.at(place), now, origin=RECEIVERS))
        except InvalidInput as error:
            problems.append(str(error))
            wrong.append(name)
    return found, wrong


def _rules(document: Document, problems: list[str]) -> tuple[list[AlertRule], list[str]]:
    found, wrong = [], []
    for name, body in _named(document, "rules", problems).items():
        try:
            found.append(_rule(document, name, body))
        except InvalidInput as error:
            problems.append(str(error))
            wrong.append(name)
    return found, wrong


def _rule(document: Document, name: str, body: Any) -> AlertRule:
    place = ("rules", name)
    if not isinstance(body, dict):
        raise InvalidSetting(f"rules.{name} must have names with values ({document.at(place)})")
    try:
        return make_rule(name, body)
    except InvalidInput as error:
        # The line of the field that the error names, if it names one.
        words = re.findall(r"\w+", str(error).replace(f'rule "{name}"', ""))
        field = next((word for word in words if word in body), None)
        at = document.value_at(place) if field is None else document.at((*place, field))
        raise InvalidSetting(f"{error} ({at})") from None


def _named(document: Document, part: str, problems: list[str]) -> dict[str, Any]:
    named = (document.value or {}).get(part) or {}
    if isinstance(named, dict):
        return named
    problems.append(f"{part} must be names with values ({document.at((part,))})")
    return {}
