"""JSON as a tree that can be folded. Numbers are shown as they were written, never as floats.

The text of a tree is the JSON itself, so that it can be copied from the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from headrace.model.sealed import key_of_args
from headrace.task.redact import HIDDEN, Redactor

# Larger documents are not shown as a tree: their beginning is, and a download.
TREE_BYTES = 65_536
SHOWN_BYTES = 4_096
# The HTML of a tree is larger than its JSON. What would become larger than this is none.
MOST_HTML = 81_920
# Deeper levels are on one line.
DEEPEST = 24
# Short lists and objects without others in them are on one line.
LINE = 72


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object in the order in which it was written, with what it has twice."""


class JsonDocument:
    """A JSON document on a page: a tree, or if it is too large its beginning."""

    def __init__(self, encoded: bytes) -> None:
        """`encoded` is without what is to be hidden."""
        self.size = len(encoded)
        # The key that it is sealed with, where this server does not open it.
        self.sealed = key_of_args(encoded)
        self.tree = tree(encoded)
        cut = encoded[:SHOWN_BYTES] if self.tree is None else b""
        self.beginning = cut.decode("utf-8", "ignore")
        self.whole = self.tree is not None or self.size <= SHOWN_BYTES


def tree(encoded: bytes, most: int = MOST_HTML) -> Markup | None:
    """Return a document as HTML; None if it is too large for that, or not JSON."""
    if len(encoded) > TREE_BYTES:
        return None
    try:
        value = _parsed(encoded)
        parts, size = [], 0
        for part in _value(value, "", "", 0):
            parts.append(part)
            size += len(part.encode("utf-8", "replace"))
            if size > most:
                return None
    except (ValueError, RecursionError):
        return None
    made = "".join(parts)
    return Markup(f'<div class="tree">{made}</div>')  # noqa: S704 - texts are escaped below


def exact(encoded: bytes, redactor: Redactor) -> str:
    """Return a document as indented text for a form, with numbers as they were written."""
    return _indented(_parsed(redactor.json(encoded)), "")


def _parsed(encoded: bytes) -> Any:
    return json.loads(
        encoded.decode(),
        parse_int=_Number,
        parse_float=_Number,
        parse_constant=_refuse,
        object_pairs_hook=_Pairs,
    )


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _value(value: Any, key: str, end: str, depth: int) -> Iterator[str]:
    """Yield one or more lines: `key` goes before the value, `end` after it."""
    if not isinstance(value, list) or not value or depth >= DEEPEST or _fits(value):
        yield f"<div>{key}{_shown(value)}{end}</div>"
        return
    pairs = isinstance(value, _Pairs)
    opening, closing = "{}" if pairs else "[]"
    count = f"{len(value):,}"
    yield f'<details open><summary data-count="{count}">{key}{opening}</summary>'
    last = len(value) - 1
    line: list[str] = []
    for number, each in enumerate(value):
        comma = "," if number < last else ""
        if pairs:
            yield from _value(each[1], f"<b>{_escaped(_text(each[0]))}</b>: ", comma, depth + 1)
        elif isinstance(each, list) and each:
            if line:
                yield f"<div>{' '.join(line)}</div>"
                line = []
            yield from _value(each, "", comma, depth + 1)
        else:
            # Plain values of a list flow.
            line.append(_shown(each) + comma)
            if len(line) >= 100:
                yield f"<div>{' '.join(line)} </div>"
                line = []
    if line:
        yield f"<div>{' '.join(line)}</div>"
    yield f"</details><div>{closing}{end}</div>"


def _fits(value: list[Any]) -> bool:
    """Whether a list or object is short, and has no others in it."""
    items = [each[1] for each in value] if isinstance(value, _Pairs) else value
    if len(items) > LINE // 4 or any(isinstance(each, list) and each for each in items):
        return False
    return len(_compact(value)) <= LINE


def _shown(value: Any) -> str:
    text = _escaped(_compact(value))
    return f"<i>{text}</i>" if value == HIDDEN else text


def _compact(value: Any) -> str:
    match value:
        case _Number():
            return str(value)
        case _Pairs():
            inside = ", ".join(f"{_text(name)}: {_compact(each)}" for name, each in value)
            return f"{{{inside}}}"
        case list():
            return f"[{', '.join(map(_compact, value))}]"
        case str():
            return _text(value)
        case _:
            return json.dumps(value)


def _indented(value: Any, before: str) -> str:
    if not isinstance(value, list) or not value or _fits(value):
        return _compact(value)
    inner = before + "  "
    if isinstance(value, _Pairs):
        lines = [f"{inner}{_text(name)}: {_indented(each, inner)}" for name, each in value]
        return "{\n" + ",\n".join(lines) + f"\n{before}}}"
    return "[\n" + ",\n".join(inner + _indented(each, inner) for each in value) + f"\n{before}]"


def _text(text: str) -> str:
    # Half a surrogate pair cannot be sent as UTF-8.
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isascii() else written.encode("utf-8", "backslashreplace").decode()


def _escaped(text: str) -> str:
    """Escape text between tags. Quotation marks may stay there, and JSON is full of them."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
