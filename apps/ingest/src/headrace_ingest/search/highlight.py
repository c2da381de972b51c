"""Where the words of a question stand in a text. No I/O."""

from __future__ import annotations

import functools
import re
from zlib import crc32

from headrace_ingest.search.words import Terms, pairs_of, words_of

_WORD = re.compile(r"[가-힣]+|\w+")
_HANGUL = re.compile("[가-힣]")


def ranges(text: str, asked: Terms) -> list[tuple[int, int]]:
    """Return where words of a question begin and end in a text, in order, without overlap."""
    wanted = set(asked.tolist())
    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        word, begin = match.group(), match.start()
        if _HANGUL.match(word):
            for place, pair in enumerate(pairs_of(word)):
                if crc32(pair.encode()) in wanted:
                    _add(found, begin + place, begin + place + len(pair))
        elif not wanted.isdisjoint(_numbers(word)):
            _add(found, begin, match.end())
    return found


@functools.lru_cache(maxsize=16384)
def _numbers(word: str) -> tuple[int, ...]:
    return tuple(crc32(part.encode()) for part in words_of(word))


def _add(found: list[tuple[int, int]], begin: int, end: int) -> None:
    """Add a range, joined with the one before it if they touch."""
    if found and begin <= found[-1][1]:
        found[-1] = (found[-1][0], max(end, found[-1][1]))
    else:
        found.append((begin, end))
