"""From the nodes that PyYAML finds to plain data, with the line of each."""

from __future__ import annotations

import json
import math
from typing import Any

import yaml

from headrace.config_files.document import LARGEST_FILE, BadDocument, Place, dotted

# Aliases may refer to each other, so that a short file stands for an endless one.
MOST_VALUES = 100_000
DEEPEST = 100

_PREFIX = "tag:yaml.org,2002:"
_MERGE = f"{_PREFIX}merge"
_COLLECTIONS = (f"{_PREFIX}map", f"{_PREFIX}seq")
_PLAIN = tuple(f"{_PREFIX}{kind}" for kind in ("int", "float", "bool", "null"))
# Dates stay the text that they are written as: what JSON cannot hold is not guessed at. A lone
# `=` and, as a value, `<<` have kinds of their own in YAML, which nobody means.
_TEXT = tuple(f"{_PREFIX}{kind}" for kind in ("str", "timestamp", "value", "merge"))


class NodeReader:
    """Turns nodes into plain data, and writes down their lines."""

    def __init__(self, name: str) -> None:
        self.lines: dict[Place, int] = {}
        self.begins: dict[Place, int] = {}
        self.hints: dict[Place, str] = {}
        self._name = name
        self._constructor = yaml.constructor.SafeConstructor()
        self._values = 0
        self._characters = 0
        self._depth = 0

    def value(self, node: yaml.Node, place: Place) -> Any:
        """What a node stands for. What it brings by `<<` yields to what was read before."""
        self._count(node)
        line = node.start_mark.line + 1
        first = place not in self.begins
        self.lines.setdefault(place, line)
        self.begins.setdefault(place, line)
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node, place)
            if first and (read := _read_as(node.value, value)) is not None:
                self.hints[place] = read
            return value
        if node.tag not in _COLLECTIONS:
            raise self._tagged(node, place)
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(node, f"{_named(place[:2])} is nested more than {DEEPEST} deep")
        found = (
            self._mapping(node, place)
            if isinstance(node, yaml.MappingNode)
            else [self.value(each, (*place, index)) for index, each in enumerate(node.value)]
        )
        self._depth -= 1
        return found

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key, each in node.value:
            if key.tag == _MERGE:
                continue
            name = self._key(key, place)
            line = key.start_mark.line + 1
            if name in found:
                raise self._error(
                    key,
                    f'{_named(place)} has "{name}" twice, first in line {first[name]}; keep one',
                )
            first[name] = line
            self.lines.setdefault((*place, name), line)
            found[name] = self.value(each, (*place, name))
        for key, each in node.value:
            if key.tag == _MERGE:
                found = self._merged(each, place) | found
        return found

    def _merged(self, node: yaml.Node, place: Place) -> dict[str, Any]:
        """What `<<: *other` brings, or `<<: [*one, *other]`, of which the first counts."""
        found: dict[str, Any] = {}
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(each, yaml.MappingNode):
                raise self._error(each, "<< must refer to names with values, such as <<: *others")
            found = self.value(each, place) | found
        return found

    def _key(self, node: yaml.Node, place: Place) -> str:
        owner = f"{dotted(place)}: " if place else ""
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, f"{owner}a name has to be text; quote it")
        name = self._scalar(node, place)
        if isinstance(name, str):
            return name
        read = _read_as(node.value, name)
        shown = node.value if read is None else f"{node.value} (YAML reads {read})"
        raise self._error(node, f'{owner}the name {shown} is not text; quote it: "{node.value}"')

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        if node.tag in _TEXT:
            return self._text(node, place)
        if node.tag not in _PLAIN:
            raise self._tagged(node, place)
        if ":" in node.value:
            return node.value  # 12:30 is a number to the base of 60, but in YAML 1.1 only
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError):
            kind = node.tag.removeprefix(_PREFIX)
            raise self._error(
                node, f"{_named(place)} cannot be read as !!{kind}; quote it if text is meant"
            ) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(
                node, f"{_named(place)} is {node.value}, which is no number of JSON; quote it"
            )
        return value

    def _text(self, node: yaml.ScalarNode, place: Place) -> str:
        try:
            # PyYAML leaves an escaped pair (\ud83d\ude00) as two halves.
            written: str = node.value
            return written.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise self._error(
                node, f"{_named(place)} has half a character (\\ud800 to \\udfff); write it whole"
            ) from None

    def _count(self, node: yaml.Node) -> None:
        self._values += 1
        if self._values > MOST_VALUES:
            raise BadDocument(f"{self._name} stands for more than {MOST_VALUES:,} values")
        if isinstance(node, yaml.ScalarNode):
            self._characters += len(node.value)
            if self._characters > LARGEST_FILE:
                raise BadDocument(f"{self._name} stands for more than {LARGEST_FILE:,} characters")

    def _tagged(self, node: yaml.Node, place: Place) -> BadDocument:
        return self._error(
            node,
            f"{_named(place)} cannot be read: it has a tag (!); leave that out, "
            "or quote a text that begins with !",
        )

    def _error(self, node: yaml.Node, reason: str) -> BadDocument:
        return BadDocument(f"{self._name} line {node.start_mark.line + 1}: {reason}")


def _named(place: Place) -> str:
    return dotted(place) or "the file"


def _read_as(written: str, value: Any) -> str | None:
    """That `no` is read as false and `010` as 8; None if it is as anybody would read it."""
    if isinstance(value, str):
        return None
    read = json.dumps(value)
    return None if written.lower() in ("", read) else f"{written} as {read}"
