"""Words of a Korean text that may be names: what stands before particles, and what is known of it.

The dictionary splits most names that it does not know ("권도윤" into 권, 도 and 윤), so that whole
stems are looked at: nouns that are written together.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kiwipiepy import Kiwi, Token  # type: ignore[import-untyped]

from headrace_ingest.masking.korean_words import (
    COMMON_SURNAMES,
    LABELS,
    LONG_SURNAMES,
    NO_NAMES,
    PLACES,
    ROLES,
    SUFFIXES,
    SURNAMES,
    TITLES,
)

_NOUNS = ("NNP", "NNG", "NNB", "NR", "NP", "MM", "XR", "XPN", "XSN", "SL", "SH")
_ATTACHED = frozenset(("씨", "님", "군", "양", "모", "옹"))
_AGE = re.compile(r" ?\(\d{1,3}[,·)세]")
_BEFORE_TITLE = re.compile(r" ?(?:\([^()\n]{1,15}\))? ?(?:전|현|신임|제?\d차?)? ?$")


class Stem(NamedTuple):
    """Nouns that are written together: `text[begin:end]` and their places among the tokens."""

    begin: int
    end: int
    first: int
    last: int


@functools.cache
def dictionary() -> Kiwi:
    """Return the dictionary of Korean. It takes seconds and some 300 MB to load, once a process."""
    return Kiwi(num_workers=1)


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text, without those that no character stands for."""
    return [token for token in dictionary().tokenize(text) if token.len]


def stems_of(tokens: Sequence[Token]) -> Iterator[Stem]:
    """Yield the stems of a text. A title at the end of one is no part of it."""
    first = 0
    while first < len(tokens):
        if tokens[first].tag not in _NOUNS:
            first += 1
            continue
        last = first
        while last + 1 < len(tokens) and _joined(tokens[last], tokens[last + 1]):
            last += 1
        following = last + 1
        while last > first and _is_title(tokens[last]):
            last -= 1
        end = tokens[last].start + tokens[last].len
        yield Stem(tokens[first].start, end, first, last)
        first = following


def features(text: str, tokens: Sequence[Token], stem: Stem) -> list[str]:
    """Return what is known of a stem, as words that weights are learnt for."""
    form = text[stem.begin : stem.end]
    inside = tokens[stem.first : stem.last + 1]
    before = tokens[stem.first - 1] if stem.first else None
    after = tokens[stem.last + 1] if stem.last + 1 < len(tokens) else None
    size = min(len(form), 6)
    surname = form.startswith(LONG_SURNAMES) or form[0] in COMMON_SURNAMES
    rare = not surname and form[0] in SURNAMES
    tags = "+".join(token.tag for token in inside[:4])
    titled = title_follows(text, tokens, stem)
    found = [
        "bias",
        f"size={size}",
        f"tags={tags}",
        f"tags={tags}/{size}/{surname}",
        f"surname={surname}/{rare}/{size}",
        f"surname={surname}/{size}/{titled}",
        f"titled={titled}/{inside[-1].tag}",
        f"last={form[-1]}",
        f"first={form[0]}/{size > 3}",
        f"after={_named(after)}",
        f"before={before.tag if before else None}",
    ]
    if "NNP" in tags:
        found += [f"nnp:two={form[place : place + 2]}" for place in range(len(form) - 1)]
        found += [f"nnp:{name}" for name in _marks(text, stem, form, before, after)]
        found += [f"nnp:one={char}" for char in form]
    found += _marks(text, stem, form, before, after)
    if " " in form:
        found.append("space")
    if inside[-1].form in SUFFIXES and len(inside) > 1:
        found.append("suffix")
    return found


def _marks(
    text: str, stem: Stem, form: str, before: Token | None, after: Token | None
) -> list[str]:
    """Return what the neighbours of a stem say."""
    marks = []
    if before is not None and text[before.start + before.len : stem.begin] in ("", " "):
        marks.append("role" if before.form in ROLES else "near")
        if before.form in LABELS:
            marks.append("label")
    if _AGE.match(text, stem.end):
        marks.append("age")
    if form in PLACES or any(form.endswith(place) for place in PLACES):
        marks.append("place")
    if form in NO_NAMES or form in TITLES or form in ROLES:
        marks.append("noname")
    if after is not None and after.form in (",", "·"):
        marks.append("list")
    return marks


def title_follows(text: str, tokens: Sequence[Token], stem: Stem) -> str:
    """Return how a title follows: `씨` or `님` directly, another `title`, or not (`no`)."""
    for token in tokens[stem.last + 1 : stem.last + 9]:
        if _is_title(token):
            between = text[stem.end : token.start]
            if _BEFORE_TITLE.match(between):
                return token.form if token.form in ("씨", "님") else "title"
            return "no"
        if token.start > stem.end + 18:
            break
    return "no"


def _joined(one: Token, two: Token) -> bool:
    return bool(two.tag in _NOUNS and one.start + one.len == two.start)


def _is_title(token: Token) -> bool:
    return token.form in _ATTACHED or (token.form in TITLES and token.tag[0] in "NX")


def _named(token: Token | None) -> str:
    if token is None:
        return "end"
    return f"{token.form}/{token.tag}" if token.tag[0] in "JXE" else str(token.tag)
