"""The settings of a cron dispatcher; and `config/dispatcher.yaml`, which has them and schedules.

Errors name the file and the line.

dispatcher:
  poll_interval_seconds: 60
schedules:
  nightly:
    expression: "0 3 * * *"
    tz: Asia/Seoul
    task: report.build
    params: {days: 1}
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from headrace.config_files import Document, NoDocument, Place, dotted, hint, read_document
from headrace.errors import InvalidInput, InvalidSetting
from headrace.model.names import check_name
from headrace.model.schedules.cron import LEAST_INTERVAL
from headrace.model.schedules.schedule import Schedule
from headrace.suggest import did_you_mean

DEFAULT = Path("config/dispatcher.yaml")

# Files of others name the database as well; there is one, that of the App.
DATABASE = "database"
# Of a setting of the dispatcher.
LARGEST = 31 * 86_400
_SCHEDULE = tuple(field for field in Schedule.__struct_fields__ if field != "name")


class CronSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a cron dispatcher goes about its work.

    It sleeps until the next time is due, but reads the schedules again every
    `poll_interval_seconds` and never sleeps longer than `max_sleep_seconds`. A time counts as
    missed when it is `missed_after_seconds` late. For missed times of one schedule at most
    `most_at_once` jobs are made before others have their turn. `owner` is the name of the service
    whose schedules these are (default: the setting `schedules_owner`).
    """

    poll_interval_seconds: float = 60.0
    max_sleep_seconds: float = 300.0
    min_cron_interval_seconds: float = LEAST_INTERVAL
    missed_after_seconds: float = 60.0
    most_at_once: int = 1_000
    owner: str | None = None

    def __post_init__(self) -> None:
        if self.owner is not None:
            check_name("dispatcher.owner", self.owner)
        for field in self.__struct_fields__[:-1]:
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InvalidSetting(f"dispatcher.{field} must be a number, got {value!r}")
            if not value >= 1:
                raise InvalidSetting(f"dispatcher.{field} must be at least 1, got {value!r}")
            if value > LARGEST:
                raise InvalidSetting(f"dispatcher.{field} must be at most {LARGEST}, got {value!r}")


class DispatcherFile(msgspec.Struct, frozen=True):
    """What a file says. `lines` tells where each schedule begins."""

    path: Path
    settings: CronSettings
    schedules: list[Schedule]
    lines: dict[str, int]

    def at(self, name: str) -> str:
        """Where a schedule is defined, for an error."""
        return f"{self.path} line {self.lines[name]}"


def read_file(path: Path | None = None) -> DispatcherFile | None:
    """Read a file. The usual one need not exist (None); one that was asked for does."""
    where = DEFAULT if path is None else path
    try:
        document = read_document(where)
    except NoDocument:
        if path is None:
            return None
        raise
    if document.value is None:
        return DispatcherFile(where, CronSettings(), [], {})
    parts = _names(document, (), ("dispatcher", "schedules"))
    settings = _settings(document) if "dispatcher" in parts else CronSettings()
    names = _names(document, ("schedules",), None) if "schedules" in parts else {}
    schedules = [_schedule(document, name) for name in names]
    lines = {name: document.line(("schedules", name)) for name in names}
    return DispatcherFile(where, settings, schedules, lines)


def _settings(document: Document) -> CronSettings:
    known = (*CronSettings.__struct_fields__, DATABASE)
    given = dict(_names(document, ("dispatcher",), known))
    if DATABASE in given:
        place, value = ("dispatcher", DATABASE), given.pop(DATABASE)
        if value != "default":
            reason = 'must be "default": jobs are stored where HEADRACE_URL or --url says'
            raise _error(document, place, f"{dotted(place)} {reason}, got {value!r}")
    for name, value in given.items():
        place = ("dispatcher", name)
        try:
            CronSettings(**{name: value})
        except InvalidSetting as error:
            raise _error(document, place, f"{error}{hint(value)}") from None
    return CronSettings(**given)


def _schedule(document: Document, name: str) -> Schedule:
    place: Place = ("schedules", name)
    given = _names(document, place, _SCHEDULE)
    for required in ("expression", "task"):
        if required not in given:
            raise _error(document, place, f"{dotted(place)} has no {required}")
    for field, value in given.items():
        # One at a time with good ones beside it, so that the line is the one at fault.
        harmless = {"name": "a", "expression": "@daily", "task": "a", field: value}
        try:
            msgspec.convert(harmless, Schedule).checked()
        except (InvalidInput, msgspec.ValidationError) as error:
            at = (*place, field)
            reason = str(error).partition(" - at `")[0] + hint(value)
            raise _error(document, at, f"{dotted(at)} has the value {value!r}: {reason}") from None
    try:
        return msgspec.convert({"name": name, **given}, Schedule).checked()
    except InvalidInput as error:
        raise _error(document, place, f"{dotted(place)}: {error}") from None


def _names(document: Document, place: Place, known: Iterable[str] | None) -> dict[str, Any]:
    """The names with values at a place, which must be those that are known."""
    found = document.value
    for part in place:
        found = found[part]
    owner = dotted(place) or "the file"
    if not isinstance(found, dict):
        reason = f"{owner} must have names with values (name: value), got {_shown(found)}"
        raise _error(document, place, reason)
    for name in found:
        if known is not None and name not in known:
            remedy = did_you_mean(name, known)
            where = document.at((*place, name))
            raise InvalidSetting(f'{owner} has no setting "{name}"; {remedy} ({where})')
    return found


def _error(document: Document, place: Place, reason: str) -> InvalidSetting:
    return InvalidSetting(f"{reason} ({document.value_at(place)})")


def _shown(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case list():
            return "a list"
        case _:
            return repr(value)[:60]
