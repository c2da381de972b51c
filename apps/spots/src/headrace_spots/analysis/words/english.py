"""What is read in an English text: words with their negation, and how much they praise or blame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import log1p, sqrt

import numpy as np

from headrace_spots.analysis.model.ngrams import Floats
from headrace_spots.analysis.words.english_words import (
    EMOJIS,
    NEGATIONS,
    SMILEYS,
    STRENGTHENERS,
    TURNS,
    VALUES,
    WEAKENERS,
    WISHES,
    value_of,
)

TOLD = 20
_WORD = re.compile(r"[:;]-?[)(dD/](?!\w)|<3|[^\W_]+(?:[-'][^\W_]+)*|[.,!?;:()]|[^\w\s]")
_ENDS = frozenset(".,!?;:()")
_REACH = 4


def words(text: str) -> list[str]:
    """Return the words and marks of a normalised text, in order."""
    return _WORD.findall(text)


def words_with_places(text: str) -> list[tuple[str, int, int]]:
    """Return the words and marks of a text in small letters, each with its begin and end."""
    return [(found.group().lower(), *found.span()) for found in _WORD.finditer(text)]


def marked(found: Sequence[str]) -> list[str]:
    """Return words, those behind a negation (up to four, in the same clause) marked with it."""
    reach = 0
    result = []
    for word in found:
        if word in _ENDS or word in TURNS:
            reach = 0
        result.append(f"not {word}" if reach and word not in _ENDS else word)
        reach = _REACH if word in NEGATIONS or word.endswith("n't") else max(reach - 1, 0)
    return result


def values(found: Sequence[str], known: Mapping[str, float] = VALUES) -> list[float]:
    """Return for each word how much it praises or blames where it stands: turned by a negation,
    raised by "very", lowered by "slightly".
    """
    result = []
    for place, word in enumerate(found):
        value = SMILEYS.get(word) or EMOJIS.get(word[:1]) or value_of(word, known)
        if value:
            before = _before(found, place)
            value *= 1 + 0.3 * sum(other in STRENGTHENERS for other in before[-2:])
            value *= 1 - 0.35 * any(other in WEAKENERS for other in before[-2:])
            if any(other in NEGATIONS or other.endswith("n't") for other in before):
                value *= -0.6
        result.append(value)
    return result


def _before(found: Sequence[str], place: int) -> list[str]:
    nearest: list[str] = []
    for word in reversed(found[max(0, place - _REACH) : place]):
        if word in _ENDS or word in TURNS:
            break
        nearest.insert(0, word)
    return nearest


def told(texts: Sequence[Sequence[str]]) -> Floats:
    """Return a row of `TOLD` numbers for the words of each text: what its words say in sum."""
    return np.array([_told(found) for found in texts], dtype=np.float32).reshape(-1, TOLD)


def _told(found: Sequence[str]) -> list[float]:
    worth = values(found)
    praise = [value for value in worth if value > 0]
    blame = [value for value in worth if value < 0]
    total = sum(praise) + sum(blame)
    turn = max((place for place, word in enumerate(found) if word in TURNS), default=-1)
    after = sum(worth[turn + 1 :]) if turn >= 0 else 0.0
    length = max(len(found), 1)
    return [
        total / sqrt(total * total + 15),
        total / sqrt(length),
        sum(praise) / 4,
        sum(blame) / 4,
        max(praise, default=0) / 3,
        min(blame, default=0) / 3,
        float(bool(praise)),
        float(bool(blame)),
        float(bool(praise) and bool(blame)),
        float(not praise and not blame),
        after / sqrt(after * after + 15),
        float(turn >= 0),
        float(any(word in NEGATIONS or word.endswith("n't") for word in found)),
        float(any(word in WISHES for word in found)),
        float("!" in found),
        float("?" in found),
        log1p(length) / 4,
        float(any(word in STRENGTHENERS for word in found)),
        float(any(word[:1].isdigit() for word in found)),
        next((value for value in reversed(worth) if value), 0.0) / 3,
    ]
