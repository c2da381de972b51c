"""Reads YAML 1.2 and JSON files, so that errors can name the line.

All YAML files of Headrace are read here: workflows, schedules, brokers. ruamel.yaml is in the
extras that have such files; the importer says which.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from headrace.errors import InvalidSetting

LARGEST_FILE = 4 * 1_048_576
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
# What the parser says, and the remedy. Names of aliases, anchors and tags are not repeated: an
# unquoted password may begin with any of these signs.
_REMEDIES = {
    "found another document": "a second document begins here; put it into a file of its own",
    "undefined alias": "this alias (*) has no anchor (&); quote a text that begins with *",
    "undefined tag handle": "this tag (!) is not known; quote a text that begins with !",
    r"found character '\t'": "a tab cannot stand here; indent with spaces",
}
_LINE = re.compile(r"line (\d+)")

Place = tuple[str | int, ...]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a file (None if it is empty), and the line of each part.

    `lines` has the line in which each part is named, `begins` where its value begins.
    """

    name: str
    value: Any = None
    lines: dict[Place, int] = {}
    begins: dict[Place, int] = {}

    def line(self, place: Place = ()) -> int:
        """Return the line of a part; of one that is missing, the line of what should contain it."""
        return _nearest(self.lines, place)

    def at(self, place: Place = ()) -> str:
        """Return the file and the line, for an error."""
        return f"{self.name} line {self.line(place)}"

    def value_at(self, place: Place = ()) -> str:
        """Return the file and the line in which a value begins, which may be below its name."""
        return f"{self.name} line {_nearest(self.begins, place)}"


class BadDocument(InvalidSetting):
    """A file that cannot be read."""


class NoDocument(BadDocument):
    """A file that is not there."""


def dotted(place: Place) -> str:
    """Return a place as people write it: `steps[0].params.url`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def hint(value: object) -> str:
    """Return what to add to an error about a value that YAML 1.1 read as true or false."""
    if isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return f"; {value} is text in YAML 1.2, only true and false are not"
    return ""


def _nearest(lines: dict[Place, int], place: Place) -> int:
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def read_document(path: Path) -> Document:
    """Read a file. One whose name ends in .json has to be JSON, any other YAML."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise NoDocument(f"cannot read {str(path)!r}: there is no such file") from None
    except OSError as error:
        raise BadDocument(f"cannot read {str(path)!r}: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise BadDocument(f"{path} is larger than {LARGEST_FILE:,} bytes; split it up")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadDocument(f"{path} line {line} is not UTF-8 text; save it as UTF-8") from None
    name = str(path)
    return _json(text, name) if path.suffix == ".json" else _yaml(text, name)


def _json(text: str, name: str) -> Document:
    """JSON is nearly a part of YAML, so one reader finds the lines of both."""
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise BadDocument(
            f"{name} line {error.lineno} is not valid JSON: {error.msg} (column {error.colno})"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadDocument(f"{name} is not valid JSON: {error}") from None
    # Between values JSON allows tabs, YAML does not. Within text JSON has none.
    found = _yaml(text.replace("\t", " "), name)
    # Only the lines are YAML's: to it U+2028 within text is a new line.
    return msgspec.structs.replace(found, value=value)


def _yaml(text: str, name: str) -> Document:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReusedAnchorWarning)
            root = YAML(typ="safe", pure=True).compose(text)
        if root is None:
            return Document(name=name)
        reader = NodeReader(name)
        value = reader.value(root, ())
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise BadDocument(f"{name} line {line} is not valid YAML: {_reason(error)}") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadDocument(
            f"{name} line {line} is not valid YAML: "
            f"the character U+{ord(text[error.position]):04X} cannot be in it; remove it"
        ) from None
    except ReusedAnchorWarning as error:
        line = _LINE.search(str(error).partition("second")[2])
        raise BadDocument(
            f"{name} line {line[1] if line else 1} is not valid YAML: "
            "this anchor (&) is there twice; name it otherwise, or quote the text"
        ) from None
    except RecursionError:
        raise BadDocument(f"{name} is nested too deeply") from None
    return Document(name=name, value=value, lines=reader.lines, begins=reader.begins)


def _reason(error: MarkedYAMLError) -> str:
    said = f"{error.context} {error.problem}"
    for part, remedy in _REMEDIES.items():
        if part in said:
            return remedy
    return error.problem or error.context or "it cannot be read"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _finite(written: str) -> float:
    value = float(written)
    return value if math.isfinite(value) else _no_constant(written)


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
