"""`config/dispatcher.yaml`: settings and schedules from a file. Errors name the file and the line.

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

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from headrace.dispatchers.settings import CronSettings
from headrace.errors import InvalidInput, InvalidSetting
from headrace.model.schedule import Schedule

DEFAULT = Path("config/dispatcher.yaml")
LARGEST_FILE = 4 * 1_048_576
# Aliases may refer to each other, so that a short file stands for an endless one.
MOST_NODES = 100_000

_SETTINGS = CronSettings.__struct_fields__
_SCHEDULE = tuple(field for field in Schedule.__struct_fields__ if field != "name")


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
        with where.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        if path is None:
            return None
        raise InvalidInput(f"cannot read {str(path)!r}: there is no such file") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {str(where)!r}: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise InvalidSetting(f"{where} is larger than {LARGEST_FILE:,} bytes; split it up")
    return _Reader(where).read(content)


class _Reader:
    """Walks the nodes of one file, so that what is wrong is told with its line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._nodes = 0

    def read(self, content: bytes) -> DispatcherFile:
        try:
            root = yaml.compose(content, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = 1 if mark is None else mark.line + 1
            reason = error.problem or error.context
            raise InvalidSetting(f"{self._path} line {line} is not valid YAML: {reason}") from None
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            reason = " ".join(str(error).split()) or "it is nested too deeply"
            raise InvalidSetting(f"{self._path} is not valid YAML: {reason}") from None
        if root is None or root.tag == "tag:yaml.org,2002:null":
            return DispatcherFile(self._path, CronSettings(), [], {})
        parts = self._mapping(root, "the file", ("dispatcher", "schedules"))
        settings = self._settings(parts["dispatcher"]) if "dispatcher" in parts else CronSettings()
        if "schedules" not in parts:
            return DispatcherFile(self._path, settings, [], {})
        named = self._mapping(parts["schedules"], "schedules", None)
        schedules = [self._schedule(name, node) for name, node in named.items()]
        keys = [key for key, _ in parts["schedules"].value]
        lines = {key.value: key.start_mark.line + 1 for key in keys}
        return DispatcherFile(self._path, settings, schedules, lines)

    def _settings(self, node: yaml.Node) -> CronSettings:
        given: dict[str, Any] = {}
        for name, value in self._mapping(node, "dispatcher", _SETTINGS).items():
            given[name] = self._value(value)
            try:
                CronSettings(**{name: given[name]})
            except InvalidSetting as error:
                raise InvalidSetting(f"{error} ({self._at(value)})") from None
        return CronSettings(**given)

    def _schedule(self, name: str, node: yaml.Node) -> Schedule:
        place = f"schedules.{name}"
        fields = self._mapping(node, place, _SCHEDULE)
        for required in ("expression", "task"):
            if required not in fields:
                raise InvalidSetting(f"{place} has no {required} ({self._at(node)})")
        given = {field: self._value(value) for field, value in fields.items()}
        for field, value in fields.items():
            # One at a time with good ones beside it, so that the line is the one at fault.
            harmless = {"name": "a", "expression": "@daily", "task": "a", field: given[field]}
            try:
                msgspec.convert(harmless, Schedule).checked()
            except (InvalidInput, msgspec.ValidationError) as error:
                reason = str(error).partition(" - at `")[0]
                raise InvalidSetting(
                    f"{place}.{field} has the value {given[field]!r}: {reason} ({self._at(value)})"
                ) from None
        try:
            return msgspec.convert({"name": name, **given}, Schedule).checked()
        except InvalidInput as error:
            raise InvalidSetting(f"{place}: {error} ({self._at(node)})") from None

    def _mapping(
        self, node: yaml.Node, place: str, known: Iterable[str] | None
    ) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise InvalidSetting(
                f"{place} must have names with values (name: value), got {_shown(node)} "
                f"({self._at(node)})"
            )
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self._value(key)
            where = self._at(key)
            if not isinstance(name, str):
                raise InvalidSetting(f"{place}: the name {name!r} is not text; quote it ({where})")
            if name in found:
                raise InvalidSetting(f'{place} has "{name}" twice ({where})')
            if known is not None and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
                raise InvalidSetting(f'{place} has no setting "{name}"; {hint} ({where})')
            found[name] = value
        return found

    def _value(self, node: yaml.Node) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise InvalidSetting(f"{self._path} stands for more than {MOST_NODES:,} values")
        match node:
            case yaml.MappingNode():
                return {_key(self._value(key)): self._value(value) for key, value in node.value}
            case yaml.SequenceNode():
                return [self._value(each) for each in node.value]
            case _:
                try:
                    return _Scalars().construct_object(node)
                except (yaml.YAMLError, ValueError) as error:
                    reason = getattr(error, "problem", None) or error
                    raise InvalidSetting(
                        f"{_shown(node)} cannot be read: {reason} ({self._at(node)})"
                    ) from None

    def _at(self, node: yaml.Node) -> str:
        return f"{self._path} line {node.start_mark.line + 1}"


class _Scalars(yaml.constructor.SafeConstructor):
    """Turns plain values into text, numbers, booleans and dates; never into objects."""


def _key(name: Any) -> str:
    return name if isinstance(name, str) else msgspec.json.encode(name).decode().strip('"')


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value[:60])
    return "a list" if isinstance(node, yaml.SequenceNode) else "names with values"
