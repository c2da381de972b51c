"""Reading JSON and YAML files so that everything in them can be told with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import InvalidInput, MissingDriver

try:
    import yaml
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'workflow files need {error.name}; install it: pip install "headrace[workflows]"'
    ) from error

LARGEST_FILE = 4 * 1_048_576
# Aliases may refer to each other, so that a short file stands for an endless one.
MOST_VALUES = 100_000

Place = tuple[str | int, ...]


class Document(msgspec.Struct, frozen=True):
    """What a file says, and in which line each part of it begins."""

    name: str
    value: Any
    lines: dict[Place, int]

    def line(self, place: Place = ()) -> int:
        """In which line something is; of what is not there, where it would have to be."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def at(self, place: Place = ()) -> str:
        """The same with the file, for an error."""
        return f"{self.name} line {self.line(place)}"


class BadDocument(InvalidInput):
    """A file that cannot be read."""


def read_document(path: Path) -> Document:
    """Read a file whose name ends in .json, .yaml or .yml."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadDocument(f"cannot read {str(path)!r}: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise BadDocument(f"{path} is larger than {LARGEST_FILE:,} bytes; split it up")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadDocument(f"{path} line {line} is not UTF-8 text") from None
    return parse_document(text, name=str(path), strict_json=path.suffix == ".json")


def parse_document(text: str, *, name: str, strict_json: bool) -> Document:
    """Read text. JSON is a part of YAML, so one reader finds the lines of both."""
    if strict_json:
        try:
            json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            raise BadDocument(
                f"{name} line {error.lineno} is not valid JSON: {error.msg} (column {error.colno})"
            ) from None
        except (ValueError, RecursionError) as error:
            raise BadDocument(f"{name} is not valid JSON: {error}") from None
        # Between values JSON allows tabs, YAML does not. Within text JSON has none.
        text = text.replace("\t", " ")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        reason = error.problem or error.context
        raise BadDocument(f"{name} line {line} is not valid YAML: {reason}") from None
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split()) or "it is nested too deeply"
        raise BadDocument(f"{name} is not valid YAML: {reason}") from None
    if root is None:
        raise BadDocument(f"{name} is empty")
    reader = _Reader(name)
    return Document(name, reader.value(root, ()), reader.lines)


class _Reader:
    """Turns nodes into plain data, and writes down their lines."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Place, int] = {}
        self._scalars = yaml.constructor.SafeConstructor()
        self._count = 0

    def value(self, node: yaml.Node, place: Place) -> Any:
        self._count += 1
        line = node.start_mark.line + 1
        if self._count > MOST_VALUES:
            raise BadDocument(f"{self.name} stands for more than {MOST_VALUES:,} values")
        self.lines.setdefault(place, line)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, place)
            case yaml.SequenceNode():
                return [self.value(each, (*place, index)) for index, each in enumerate(node.value)]
            case _:
                return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, each in node.value:
            line = key.start_mark.line + 1
            name = self._scalar(key, line)
            if not isinstance(name, str):
                raise BadDocument(
                    f"{self.name} line {line}: the name {name!r} is not text; quote it"
                )
            if name in found:
                raise BadDocument(f'{self.name} line {line}: "{name}" is there twice')
            self.lines[(*place, name)] = line
            found[name] = self.value(each, (*place, name))
        return found

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            reason = getattr(error, "problem", None) or error
            raise BadDocument(f"{self.name} line {line} cannot be read: {reason}") from None
        # Dates become the text that they are written as: what JSON cannot hold is not guessed at.
        return value if isinstance(value, str | int | float | bool | None) else node.value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
