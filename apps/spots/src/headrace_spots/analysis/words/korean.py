"""What is read in a Korean text: morphemes, and letters taken apart into jamo."""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

from kiwipiepy import Kiwi  # type: ignore[import-untyped]

_FIRST, _LAST = 0xAC00, 0xD7A3
_lock = threading.Lock()


class Morpheme(NamedTuple):
    """A part of a word, its tag (Sejong), and where it stands."""

    form: str
    tag: str
    begin: int
    end: int


@functools.cache
def _dictionary() -> Kiwi:
    # It takes seconds and some 300 MB to load, once a process.
    return Kiwi(num_workers=1)


def morphemes(text: str) -> list[Morpheme]:
    """Return the morphemes of a text in order. The end of irregular tags (`VA-I`) is left off."""
    with _lock:
        found = _dictionary().tokenize(text)
    return [
        Morpheme(token.form, token.tag.split("-")[0], token.start, token.start + token.len)
        for token in found
    ]


def jamo(text: str) -> str:
    """Return a text with its syllables taken apart: `좋아` becomes ㅈ ㅗ ㅎ ㅇ ㅏ, joined."""
    parts: list[str] = []
    for letter in text:
        code = ord(letter)
        if _FIRST <= code <= _LAST:
            code -= _FIRST
            parts.append(chr(0x1100 + code // 588))
            parts.append(chr(0x1161 + code % 588 // 28))
            if code % 28:
                parts.append(chr(0x11A7 + code % 28))
        else:
            parts.append(letter)
    return "".join(parts)
