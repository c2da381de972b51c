"""Hides the values of named fields in responses and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

HIDDEN = "[redacted]"
DEFAULT = ("password", "secret", "api_key", "authorization")
# Shorter values would hide half of every text in which they happen to occur.
SHORTEST = 4


class Redactor:
    """Hides the values of some fields, wherever they are in a document."""

    def __init__(self, fields: Sequence[str] = DEFAULT) -> None:
        self.fields = frozenset(field.lower() for field in fields)
        names = "|".join(re.escape(field) for field in sorted(self.fields))
        # Escapes could spell a name in another way, so a document with any is decoded.
        pattern = rf"\\u|{names}" if names else r"(?!)"
        self._hint = re.compile(pattern.encode(), re.IGNORECASE)

    def may_hide(self, encoded: bytes) -> bool:
        """Return False if a JSON text has no such field. Cheap; True may be wrong."""
        return self._hint.search(encoded) is not None

    def json(self, encoded: bytes) -> bytes:
        """Return the JSON without the values."""
        if not self.may_hide(encoded):
            return encoded
        return msgspec.json.encode(self.value(msgspec.json.decode(encoded)))

    def value(self, value: Any) -> Any:
        """Return a decoded document without the values."""
        match value:
            case dict():
                return {
                    name: HIDDEN if self._hides(name) else self.value(each)
                    for name, each in value.items()
                }
            case list():
                return [self.value(each) for each in value]
            case _:
                return value

    def text(self, text: str, *documents: bytes | None) -> str:
        """Return a text, such as an error, without what is hidden in these documents."""
        for document in documents:
            if document and self.may_hide(document):
                for secret in self._secrets(msgspec.json.decode(document)):
                    text = text.replace(secret, HIDDEN)
        return text

    def _secrets(self, value: Any, *, hidden: bool = False) -> Iterator[str]:
        match value:
            case dict():
                for name, each in value.items():
                    yield from self._secrets(each, hidden=hidden or self._hides(name))
            case list():
                for each in value:
                    yield from self._secrets(each, hidden=hidden)
            case bool() | None:
                return
            case _ if hidden and len(str(value)) >= SHORTEST:
                yield str(value)

    def _hides(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self.fields
