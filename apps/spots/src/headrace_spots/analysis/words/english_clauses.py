"""Pieces of an English text: words, and nouns by a rule."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_spots.analysis.words.aspect_values import ENGLISH_VALUES
from headrace_spots.analysis.words.aspect_words import ENGLISH_EMPTY, english_name
from headrace_spots.analysis.words.clauses import Border, Piece
from headrace_spots.analysis.words.english import values, words_with_places
from headrace_spots.analysis.words.english_words import (
    NEGATIONS,
    TURNS,
    VALUES_IN_CLAUSES,
    WISHES,
    value_of,
)

_COMPARED = frozenset("better improve improved nicer faster cleaner cheaper".split())  # noqa: SIM905
_ENDS = frozenset(".!?")
_SOFT = frozenset((",", "and", ";", ":", "(", ")", "-"))
_TURNS = TURNS | {"while", "whereas"}
_BEFORE_NOUNS = frozenset("the a an my our their its this that these those his her your".split())  # noqa: SIM905
_AFTER_NOUNS = frozenset(
    """
    is was are were be been has had have do does did of in for with and or that which who to at
    on from by as than so but not no i we you they he she it came comes come went goes made
    makes looks looked feels felt seems seemed works worked got gets can could will would should
    took takes keeps kept stopped never always also just really very too still even only when
    where while if because after before about into out up down over off again arrived tastes
    tasted smells smelled needs need
    """.split()  # noqa: SIM905
)


def pieces(text: str) -> list[Piece]:
    """Return the words of a text with what they name and say."""
    found = words_with_places(text)
    forms = [word for word, _, _ in found]
    worth = [
        _hoped(forms, place, value) for place, value in enumerate(values(forms, VALUES_IN_CLAUSES))
    ]
    nouns = _nouns(forms)
    result = []
    for place, (word, begin, end) in enumerate(found):
        following = found[place + 1] if place + 1 < len(found) else None
        border = _border(text[end : following[1]], word, following[0]) if following else Border.NONE
        result.append(
            Piece(
                begin,
                end,
                word,
                english_name(word) or "",
                worth[place],
                nouns.get(place, ""),
                border,
            )
        )
    return result


def value_by_aspect(name: str, found: Sequence[Piece], place: int) -> float:
    """Return what words near an aspect say of it though they praise or blame nothing by themselves.

    "High" is bad of a price; "small" of a portion is more than its own small blame.
    """
    by_word = ENGLISH_VALUES.get(name, {})
    total = 0.0
    for other, piece in enumerate(found):
        if piece.form in by_word:
            near = {each.form for each in found[max(0, other - 3) : other]}
            turned = bool(near & NEGATIONS) or any(form.endswith("n't") for form in near)
            value = by_word[piece.form] * (-0.6 if turned else 1.0)
            total += (value - piece.value) / (1 + abs(place - other))
    return total


def _hoped(forms: Sequence[str], place: int, value: float) -> float:
    """Return the value of a word, turned where it is only wished for: "could be better"."""
    wished = WISHES.intersection(forms[max(0, place - 3) : place])
    return -1.0 if forms[place] in _COMPARED and wished else value


def _border(gap: str, word: str, following: str) -> Border:
    if word in _ENDS or "\n" in gap:
        return Border.END
    if following in _TURNS:
        return Border.TURN
    return Border.SOFT if word in _SOFT or following == "and" else Border.NONE


def _nouns(forms: Sequence[str]) -> dict[int, str]:
    """Return the places of nouns that name something: the last word of a group behind `the`."""
    found: dict[int, str] = {}
    for place, form in enumerate(forms):
        if form not in _BEFORE_NOUNS:
            continue
        last = -1
        for other in range(place + 1, min(place + 5, len(forms))):
            if not forms[other][:1].isalpha() or forms[other] in _AFTER_NOUNS:
                break
            last = other
        noun = forms[last] if last > 0 else ""
        if len(noun) > 2 and noun not in ENGLISH_EMPTY and not value_of(noun, VALUES_IN_CLAUSES):
            found[last] = noun
    return found
