"""Names of persons in Korean text: proper nouns that a surname or a title makes a person's."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from kiwipiepy import Kiwi, Token  # type: ignore[import-untyped]

from headrace_ingest.masking.kinds import Kind, Span
from headrace_ingest.masking.korean_words import (
    COMMON_SURNAMES,
    LABELS,
    LONG_SURNAMES,
    NO_NAMES,
    ROLES,
    SUFFIXES,
    SURNAMES,
    TITLES,
)

_HANGUL = re.compile(r"[가-힣]")
# Pieces that are short enough for the dictionary: it is slow for a line without an end.
_PIECE = re.compile(r"[^\n]{1,2000}")
_PARTICLES = (
    r"(?:은|는|이|가|을|를|과|와|의|도|만|에게|께|께서|한테|로|으로|보다|처럼|이랑|랑|하고|이나|나|까지|부터"
    r"|에게서|이라는|라는|이라고|라고|입니다|이다|이며|이고|였다|이었다)"
)
_ONE = "".join(sorted(SURNAMES))
_LONG = "|".join(LONG_SURNAMES)
# By spelling alone: a full name before a title, whatever the dictionary makes of it.
_TITLE_WORDS = "|".join(sorted((t for t in TITLES if len(t) > 1), key=len, reverse=True))
_TITLED = re.compile(
    rf"(?<![가-힣])((?:{_LONG}|[{_ONE}])[가-힣]{{1,2}})"
    r"(?: ?\([^()\n]{1,12}\))? ?(?:전 |현 |신임 |[0-9]차?|제[0-9])?"
    rf"(?:씨|님|(?:{_TITLE_WORDS}))(?![가-힣]{{3}})"
)
_SHORT_TITLED = re.compile(
    rf"(?<![가-힣])([{_ONE}]|[A-Z])(?: ?모| ?某)?(?: ?\([^()\n]{{1,12}}\))?"
    r" ?(?:씨|군|양)(?=[가-힣]{0,3}(?![가-힣]))"
)
_LABELLED = re.compile(
    rf"(?:{'|'.join(LABELS)})(?:은|는)? ?[:=]? ?"
    rf"((?:{_LONG}|[{_ONE}])[가-힣]{{1,2}}?)(?={_PARTICLES}?(?![가-힣]))"
)


@functools.cache
def _dictionary() -> Kiwi:
    """Return the dictionary of Korean. It takes seconds and some 300 MB to load, once a process."""
    return Kiwi(num_workers=1)


def find_korean_names(text: str) -> Iterator[Span]:
    """Yield names of persons in Korean letters."""
    if not _HANGUL.search(text):
        return
    for match in _PIECE.finditer(text):
        piece = match[0]
        if _HANGUL.search(piece):
            for begin, end in _in_piece(piece):
                yield Span(match.start() + begin, match.start() + end, Kind.PERSON)


def _in_piece(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_TITLED, _SHORT_TITLED, _LABELLED):
        for match in pattern.finditer(text):
            if match[1] not in NO_NAMES and not (match[1] in TITLES or match[1] in ROLES):
                yield match.span(1)
    tokens = [token for token in _dictionary().tokenize(text) if token.len]
    for place, token in enumerate(tokens):
        if token.tag == "NNP" and _is_person(text, tokens, place):
            yield token.start, token.start + token.len


def _is_person(text: str, tokens: Sequence[Token], place: int) -> bool:
    """Return whether a proper noun is a person's name, by its form and its neighbours."""
    token = tokens[place]
    form = token.form
    if form in NO_NAMES or _continues(tokens, place):
        return False
    if _title_follows(text, tokens, place) or _role_precedes(text, tokens, place):
        return True
    if form.startswith(LONG_SURNAMES):
        return len(form) in (3, 4)
    return len(form) == 3 and form[0] in COMMON_SURNAMES


def _continues(tokens: Sequence[Token], place: int) -> bool:
    """Whether the word goes on, and says that it is a place, a firm or a thing."""
    token = tokens[place]
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    if following is None or following.start != token.start + token.len:
        return False
    return following.tag.startswith(("N", "XSN")) and following.form in SUFFIXES


def _title_follows(text: str, tokens: Sequence[Token], place: int) -> bool:
    end = tokens[place].start + tokens[place].len
    for token in tokens[place + 1 : place + 8]:
        between = text[end : token.start]
        if not re.fullmatch(r" ?(?:\([^()]{0,15}\))? ?(?:전|현|신임)? ?", between):
            return False
        if token.form in TITLES and token.tag[0] in "NX":
            return True
        if token.tag not in ("SSO", "SSC", "SN", "SP", "NNB", "MM", "SL"):
            return False
        end = token.start + token.len
    return False


def _role_precedes(text: str, tokens: Sequence[Token], place: int) -> bool:
    if not place or not 2 <= len(tokens[place].form) <= 5:
        return False
    before = tokens[place - 1]
    gap = text[before.start + before.len : tokens[place].start]
    return gap in (" ", ": ", ":") and before.form in ROLES
