"""Hides the values of named arguments and fields: in responses, errors and logs."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

HIDDEN = "[redacted]"
DEFAULT = ("password", "secret", "api_key", "authorization")
# Shorter values would hide half of every text in which they happen to occur.
SHORTEST = 4
DEEPEST = 16
_KINDS: dict[bytes, Any] = {b"{": dict[str, msgspec.Raw], b"[": list[msgspec.Raw]}


class Redactor:
    """Hides the values of some fields, wherever they are in a document."""

    def __init__(self, fields: Sequence[str] = DEFAULT) -> None:
        self.fields = frozenset(field.lower() for field in fields)
        # Escapes could spell a name in another way, so a document with any is decoded.
        self._hints = (rb"\u", *(field.encode() for field in sorted(self.fields)))

    def may_hide(self, encoded: bytes) -> bool:
        """Return False if a JSON text has no such field. Cheap; True may be wrong."""
        if not self.fields:
            return False
        lower = encoded.lower()
        return any(hint in lower for hint in self._hints)

    def json(self, encoded: bytes) -> bytes:
        """Return the JSON without the values."""
        return self.clean(encoded)[0]

    def clean(self, encoded: bytes) -> tuple[bytes, list[str]]:
        """Return the JSON without the values, and these: a large document is read once for both."""
        secrets: list[str] = []
        return self._clean(encoded, DEEPEST, secrets), secrets

    def _clean(self, encoded: bytes, deeper: int, secrets: list[str]) -> bytes:
        """Take apart only what may have something to hide: the rest stays as it was written, with
        numbers that no float can hold.
        """
        kind = _KINDS.get(encoded.lstrip()[:1])
        if kind is None or not self.may_hide(encoded):
            return encoded
        if not deeper:  # each level is read once more
            value = _decoded(encoded)
            secrets += self._secrets(value)
            return msgspec.json.encode(self.value(value))
        found = msgspec.json.decode(encoded, type=kind)
        if isinstance(found, list):
            raw = [msgspec.Raw(self._clean(bytes(each), deeper - 1, secrets)) for each in found]
            return msgspec.json.encode(raw)
        clean: dict[str, msgspec.Raw | str] = {}
        for name, each in found.items():
            if self.hides(name):
                secrets += self._secrets(_decoded(bytes(each)), hidden=True)
                clean[name] = HIDDEN
            else:
                clean[name] = msgspec.Raw(self._clean(bytes(each), deeper - 1, secrets))
        return msgspec.json.encode(clean)

    def value(self, value: Any) -> Any:
        """Return a decoded document without the values."""
        match value:
            case dict():
                return {
                    name: HIDDEN if self.hides(name) else self.value(each)
                    for name, each in value.items()
                }
            case list():
                return [self.value(each) for each in value]
            case _:
                return value

    def hidden_in(self, arguments: dict[str, Any]) -> set[str]:
        """Return the names of arguments that are hidden, or have something hidden in them."""
        return {
            name
            for name, value in arguments.items()
            if self.hides(name) or self.value(value) != value
        }

    def text(self, text: str, *documents: bytes | None) -> str:
        """Return a text, such as an error, without what is hidden in these documents."""
        return without(text, self.secrets(*documents))

    def refusal(self, text: str, *documents: bytes) -> str:
        """Return why arguments were refused. Such a text quotes them, perhaps cut in the middle of
        a value, so what it quotes is left out where something in them is hidden.
        """
        if not any(self.may_hide(document) for document in documents):
            return text
        before, _, rest = text.partition("; got ")
        _, _, takes = rest.rpartition("; it takes: ")
        known = f"; it takes: {takes}" if takes else ""
        return self.text(before, *documents) + known

    def secrets(self, *documents: bytes | None) -> list[str]:
        """Return the values that are hidden in these documents."""
        return [secret for each in documents if each for secret in self.clean(each)[1]]

    def _secrets(self, value: Any, *, hidden: bool = False) -> Iterator[str]:
        match value:
            case dict():
                for name, each in value.items():
                    yield from self._secrets(each, hidden=hidden or self.hides(name))
            case list():
                for each in value:
                    yield from self._secrets(each, hidden=hidden)
            case bool() | None:
                return
            case _ if hidden and len(str(value)) >= SHORTEST:
                yield str(value)

    def hides(self, name: object) -> bool:
        """Return whether the value of a field of this name is hidden."""
        return isinstance(name, str) and name.lower() in self.fields


def _decoded(encoded: bytes) -> Any:
    try:
        return msgspec.json.decode(encoded)
    except msgspec.ValidationError:  # a number that is too large for a float
        return json.loads(encoded, parse_float=str)


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these values, however programs write them: as `repr` and JSON do, also
    twice, quoted for a URL or for HTML, in base64, also as part of something longer.
    """
    written = {way for secret in secrets for way in _ways(secret) if len(way) >= SHORTEST}
    # The longest first: what is left of one in which another begins would be told.
    for secret in sorted(written, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _ways(secret: str) -> Iterator[str]:
    encoded = secret.encode("utf-8", "surrogatepass")
    yield secret
    once = {way for way in _escaped(secret) if way != secret}
    once.add(repr(encoded)[2:-1])
    yield from once
    for way in once:
        yield from _escaped(way)
    for safe in ("", "/"):
        quoted = quote(encoded, safe=safe)
        plus = quote_plus(encoded, safe=safe)
        yield from (quoted, plus, _lower(quoted), _lower(plus))
    yield html.escape(secret)
    yield from _base64(encoded)


def _escaped(text: str) -> Iterator[str]:
    """How `repr`, `ascii` and JSON write a text, whichever quotes are around it."""
    body = repr(text)[1:-1]
    bare = body.replace("\\'", "'")
    yield from (body, bare, bare.replace("'", "\\'"), bare.replace('"', '\\"'))
    yield ascii(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _lower(quoted: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)


def _base64(encoded: bytes) -> Iterator[str]:
    """What base64 of these bytes has in it, wherever they stand in what was encoded."""
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * before + encoded).decode()
            # The first and the last characters are also of what stands before and behind.
            sure = whole[-(-before * 8 // 6) : (before + len(encoded)) * 8 // 6]
            if len(sure) > SHORTEST:
                yield sure
        if not before:
            yield from (whole, base64.b64encode(encoded).decode())
