"""Reads a file into a `Document`."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning
from ruamel.yaml.reader import ReaderError

from headrace.config_files.document import LARGEST_FILE, BadDocument, Document, NoDocument
from headrace.config_files.nodes import NodeReader

# What the parser says, and the remedy. Names of aliases, anchors and tags are not repeated: an
# unquoted password may begin with any of these signs.
_REMEDIES = {
    "found another document": "a second document begins here; put it into a file of its own",
    "undefined alias": "this alias (*) has no anchor (&); quote a text that begins with *",
    "undefined tag handle": "this tag (!) is not known; quote a text that begins with !",
    r"found character '\t'": "a tab cannot stand here; indent with spaces",
}
_LINE = re.compile(r"line (\d+)")


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
