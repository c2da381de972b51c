"""Turns the nodes of a YAML file into plain data, and records the line of each."""

from __future__ import annotations

import math
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headrace.config_files.document import LARGEST_FILE, BadDocument, Place, dotted

# Aliases may refer to each other, so that a short file stands for an endless one.
MOST_VALUES = 100_000
DEEPEST = 100

_PREFIX = "tag:yaml.org,2002:"
_NULL = f"{_PREFIX}null"
_MERGE = f"{_PREFIX}merge"
_COLLECTIONS = (f"{_PREFIX}map", f"{_PREFIX}seq")
_PLAIN = tuple(f"{_PREFIX}{kind}" for kind in ("int", "float", "bool", "null"))
# Dates stay text, because JSON has none. A lone `=` and, as a value, `<<` have types of their own
# in YAML, which nobody means.
_TEXT = tuple(f"{_PREFIX}{kind}" for kind in ("str", "timestamp", "value", "merge"))


class NodeReader:
    """Turns nodes into plain data. `lines` and `begins` are those of `Document`."""

    def __init__(self, name: str) -> None:
        self.lines: dict[Place, int] = {}
        self.begins: dict[Place, int] = {}
        self._name = name
        self._constructor = YAML(typ="safe", pure=True).constructor
        self._values = 0
        self._characters = 0
        self._depth = 0

    def value(self, node: Node, place: Place) -> Any:
        """Return the data of a node. Names that are given win over those merged in by `<<`."""
        self._count(node)
        line = node.start_mark.line + 1
        if node.tag == _NULL and not node.value:
            line = self.lines.get(place, line)  # nothing is written: the parser says where it ended
        self.lines.setdefault(place, line)
        self.begins.setdefault(place, line)
        if isinstance(node, ScalarNode):
            return self._scalar(node, place)
        if node.tag not in _COLLECTIONS:
            raise self._tagged(node, place)
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(node, f"{_named(place[:2])} is nested more than {DEEPEST} deep")
        found = (
            self._mapping(node, place)
            if isinstance(node, MappingNode)
            else [self.value(each, (*place, index)) for index, each in enumerate(node.value)]
        )
        self._depth -= 1
        return found

    def _mapping(self, node: MappingNode, place: Place) -> dict[str, Any]:
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

    def _merged(self, node: Node, place: Place) -> dict[str, Any]:
        """Return what `<<: *other` merges in, or `<<: [*one, *other]`, of which the first wins."""
        found: dict[str, Any] = {}
        for each in node.value if isinstance(node, SequenceNode) else [node]:
            if not isinstance(each, MappingNode):
                raise self._error(each, "<< must refer to names with values, such as <<: *others")
            found = self.value(each, place) | found
        return found

    def _key(self, node: Node, place: Place) -> str:
        owner = f"{dotted(place)}: " if place else ""
        if not isinstance(node, ScalarNode):
            raise self._error(node, f"{owner}a name has to be text; quote it")
        name = self._scalar(node, place)
        if isinstance(name, str):
            return name
        raise self._error(
            node, f'{owner}the name {node.value} is not text; quote it: "{node.value}"'
        )

    def _scalar(self, node: ScalarNode, place: Place) -> Any:
        if node.tag in _TEXT:
            return self._text(node, place)
        if node.tag not in _PLAIN:
            raise self._tagged(node, place)
        try:
            value = self._constructor.construct_object(node)
        except (YAMLError, ValueError, LookupError):
            kind = node.tag.removeprefix(_PREFIX)
            raise self._error(
                node, f"{_named(place)} cannot be read as !!{kind}; quote it if text is meant"
            ) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(
                node, f"{_named(place)} is {node.value}, which is no number of JSON; quote it"
            )
        return value

    def _text(self, node: ScalarNode, place: Place) -> str:
        try:
            # An escaped pair (\ud83d\ude00) is left as two halves by the parser.
            written: str = node.value
            return written.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise self._error(
                node, f"{_named(place)} has half a character (\\ud800 to \\udfff); write it whole"
            ) from None

    def _count(self, node: Node) -> None:
        self._values += 1
        if self._values > MOST_VALUES:
            raise BadDocument(f"{self._name} stands for more than {MOST_VALUES:,} values")
        if isinstance(node, ScalarNode):
            self._characters += len(node.value)
            if self._characters > LARGEST_FILE:
                raise BadDocument(f"{self._name} stands for more than {LARGEST_FILE:,} characters")

    def _tagged(self, node: Node, place: Place) -> BadDocument:
        return self._error(
            node,
            f"{_named(place)} cannot be read: it has a tag (!); leave that out, "
            "or quote a text that begins with !",
        )

    def _error(self, node: Node, reason: str) -> BadDocument:
        return BadDocument(f"{self._name} line {node.start_mark.line + 1}: {reason}")


def _named(place: Place) -> str:
    return dotted(place) or "the file"
