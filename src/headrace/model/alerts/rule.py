"""Alert rules: what has to be so, for how long, and who is told. Plain data and checks."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import msgspec

from headrace.errors import InvalidInput, InvalidSetting
from headrace.model.names import NAME_LIMIT, check_name
from headrace.model.times import LONGEST_WAIT, is_number, parse_span
from headrace.suggest import did_you_mean

RuleKind = Literal[
    "queue_length",
    "queue_age",
    "failure_rate",
    "wait_p95",
    "worker_lost",
    "lane_stuck",
    "schedule_missed",
    "dispatcher_silent",
    "dispatcher_behind",
    "dead_letters",
    "engine_space",
    "breaker_open",
]
KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
Severity = Literal["info", "warning", "critical"]
Phase = Literal["ok", "waiting", "firing"]

MOST_RECEIVERS = 20
MOST_PATTERNS = 100
LONGEST_SUMMARY = 500
# Series tell whole minutes, and an hour of them is read at once.
SHORTEST_WINDOW, LONGEST_WINDOW = 60.0, 3_600.0
SHORTEST_REPEAT = 60.0


# What each kind takes beside what all take; what has a star is needed.
FIELDS: dict[RuleKind, tuple[str, ...]] = {
    "queue_length": ("above*", "queues"),
    "queue_age": ("above*", "queues"),
    "failure_rate": ("above*", "window", "least", "by", "queues", "tasks"),
    "wait_p95": ("above*", "window", "least", "by", "queues", "tasks"),
    "worker_lost": ("names",),
    "lane_stuck": ("queues",),
    "schedule_missed": ("names",),
    "dispatcher_silent": ("names",),
    "dispatcher_behind": ("above", "names"),
    "dead_letters": ("above",),
    "engine_space": ("above", "free_below"),
    "breaker_open": ("queues",),
}
COMMON = ("kind", "to", "for", "repeat", "severity", "summary", "enabled")
SPANS = ("for", "repeat", "window")
# Kinds whose `above` is seconds, and those whose sizes are bytes.
IN_SECONDS = ("queue_age", "wait_p95")
IN_BYTES = ("engine_space",)
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


class AlertRule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"for_": "for"}
):
    """When somebody is told, and who. Times are seconds.

    The condition has to hold for `for`; the receivers `to` are told then, again every `repeat`
    seconds while it holds, and once when it is over. `above` is jobs, seconds, a share from 0 to 1,
    messages or bytes, by the kind. A rate is of the last `window`, by queue or by task (`by`), if
    there were at least so many jobs (`least`). `queues`, `tasks` and `names` restrict a rule to
    what fits one of the patterns, in which `*` stands for any text.
    """

    name: str
    kind: RuleKind
    to: tuple[str, ...]
    above: float | None = None
    free_below: float | None = None
    window: float = 300.0
    least: int = 20
    by: Literal["queue", "task"] = "queue"
    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    for_: float = 0.0
    repeat: float | None = None
    severity: Severity = "warning"
    summary: str = ""
    enabled: bool = True

    def checked(self) -> AlertRule:
        """Return self if valid; raise `InvalidSetting` otherwise."""
        check_name("rule", self.name)
        self._check_fields()
        if not self.to:
            raise self._error('to names no receiver; write, for example, to: ["ops"]')
        if len(self.to) > MOST_RECEIVERS:
            raise self._error(f"to may have {MOST_RECEIVERS} receivers, got {len(self.to)}")
        for receiver in self.to:
            check_name("receiver", receiver)
        self._check_numbers()
        for field in ("queues", "tasks", "names"):
            self._check_patterns(field, getattr(self, field))
        if len(self.summary) > LONGEST_SUMMARY or not self.summary.isprintable():
            raise self._error(f"summary must be one line of {LONGEST_SUMMARY} characters at most")
        return self

    def _check_fields(self) -> None:
        taken = FIELDS[self.kind]
        for field in msgspec.structs.fields(self):
            name = field.encode_name
            if name in (*COMMON, "name"):
                continue
            given = getattr(self, field.name) != field.default
            if given and not {name, f"{name}*"} & set(taken):
                known = ", ".join(each.rstrip("*") for each in taken)
                raise self._error(f"{self.kind} has no {name}; it takes: {known}")
            if f"{name}*" in taken and not given:
                raise self._error(f"{self.kind} needs {name}")
        if self.kind == "engine_space" and (self.above is None) == (self.free_below is None):
            raise self._error("engine_space needs above (bytes in use) or free_below, one of both")

    def _check_numbers(self) -> None:
        for field in ("above", "free_below"):
            value = getattr(self, field)
            if value is not None and not 0 <= value <= 2**63:
                raise self._error(f"{field} must be 0 or more, got {value:g}")
        if self.kind == "failure_rate" and self.above is not None and not self.above < 1:
            raise self._error(
                f"above is a share of failed jobs below 1, got {self.above:g}; 0.1 is one in ten"
            )
        if not SHORTEST_WINDOW <= self.window <= LONGEST_WINDOW:
            raise self._error(f"window must be between 1 minute and 1 hour, got {self.window:g} s")
        if not 1 <= self.least <= 1_000_000:
            raise self._error(f"least must be between 1 and 1,000,000, got {self.least}")
        if not 0 <= self.for_ <= LONGEST_WAIT:
            raise self._error(f"for must be between 0 s and ten years, got {self.for_:g}")
        if self.repeat is not None and not SHORTEST_REPEAT <= self.repeat <= LONGEST_WAIT:
            raise self._error(f"repeat must be at least {SHORTEST_REPEAT:g} s, got {self.repeat:g}")

    def _check_patterns(self, field: str, patterns: tuple[str, ...]) -> None:
        if len(patterns) > MOST_PATTERNS:
            raise self._error(f"{field} may have {MOST_PATTERNS} patterns, got {len(patterns)}")
        for each in patterns:
            if not 1 <= len(each) <= NAME_LIMIT or not each.isprintable():
                raise self._error(f"{field} has {each[:60]!r}; write a name, or one with *")

    def _error(self, reason: str) -> InvalidSetting:
        return InvalidSetting(f'rule "{self.name}": {reason}')


def fits(patterns: tuple[str, ...], name: str) -> bool:
    """Return whether a name fits one of the patterns; without patterns every name does."""
    return not patterns or any(fnmatchcase(name, each.replace("[", "[[]")) for each in patterns)


def make_rule(name: str, fields: Mapping[str, Any]) -> AlertRule:
    """Return a checked rule. Spans may be text ("5m"), sizes too ("500MB"), and one name may stand
    for a list. Raises `InvalidSetting`, which names the field.
    """
    given = {("for" if field == "for_" else field): value for field, value in fields.items()}
    known = [each.encode_name for each in msgspec.structs.fields(AlertRule) if each.name != "name"]
    for field in given:
        if field not in known:
            raise InvalidSetting(f'rule "{name}": no field "{field}"; {did_you_mean(field, known)}')
    for required in ("kind", "to"):
        if given.get(required) is None:
            raise InvalidSetting(f'rule "{name}" has no {required}')
    kind = given["kind"]
    if kind not in KINDS:
        raise InvalidSetting(
            f'rule "{name}": kind has the value {kind!r}; {did_you_mean(str(kind), KINDS)}'
        )
    for field, value in given.items():
        try:
            given[field] = _converted(field, value, str(kind))
        except InvalidInput as error:
            raise InvalidSetting(f'rule "{name}": {error}') from None
    try:
        made = msgspec.convert({"name": name, **given}, AlertRule)
    except msgspec.ValidationError as error:
        raise InvalidSetting(f'rule "{name}": {error}') from None
    return made.checked()


def _converted(field: str, value: Any, kind: str) -> Any:
    if field in ("to", "queues", "tasks", "names") and isinstance(value, str):
        return [value]
    if isinstance(value, str):
        if field in SPANS or (field == "above" and kind in IN_SECONDS):
            return parse_span(field, value)
        if field in ("above", "free_below") and kind in IN_BYTES:
            return parse_size(field, value)
        if field == "above" and value.strip().endswith("%"):
            return _percent(value)
    if field in (*SPANS, "above", "free_below") and value is not None and not is_number(value):
        raise InvalidInput(f"{field} must be a number, got {value!r}")
    return value


def _percent(text: str) -> float:
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        raise InvalidInput(f"above {text!r} is not a share; write 10% or 0.1") from None


def parse_size(name: str, text: str) -> float:
    """Bytes in "500000", "500kB", "1.5 GB"."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text.strip()[len(number) :].strip().lower()
    try:
        return float(number) * _BYTES[unit]
    except (ValueError, KeyError):
        raise InvalidInput(
            f"{name} {text!r} is not a size; write bytes (500000), or 500kB, 20MB, 1.5GB"
        ) from None
