"""Names of persons in Korean text: stems that a surname, a title or their letters make a name.

What each sign is worth was learnt from sentences that people have marked (see the README); full
names with a title or after a label are names without asking.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from importlib import resources
from math import exp

from headrace_ingest.masking.kinds import Kind, Span
from headrace_ingest.masking.korean_stems import Stem, features, stems_of, title_follows, tokens_of
from headrace_ingest.masking.korean_words import (
    LABELS,
    LONG_SURNAMES,
    NO_NAMES,
    PLACES,
    ROLES,
    SURNAMES,
    TITLES,
)

# Chosen for recall: a name that is shown costs more than a word that is hidden.
THRESHOLD = 0.3

_HANGUL = re.compile(r"[가-힣]")
# Pieces that are short enough for the dictionary: it is slow for a line without an end.
_PIECE = re.compile(r"[^\n]{1,2000}")
_ONE = "".join(sorted(SURNAMES))
_LONG = "|".join(LONG_SURNAMES)
_PARTICLES = "은|는|이|가|을|를|과|와|의|도|에게|께|께서|한테|입니다|이다|이며|이고"
_LABELLED = re.compile(
    rf"(?:{'|'.join(LABELS)})(?:(?:은|는)? ?[:=] ?|(?:은|는) | )"
    rf"((?:{_LONG}|[{_ONE}])[가-힣]{{2}}|[{_ONE}] [가-힣] [가-힣])(?=(?:{_PARTICLES})?(?![가-힣]))"
)
_SHORT_TITLED = re.compile(
    rf"(?<![가-힣A-Za-z])([{_ONE}]|[A-Z])(?: ?모)?(?: ?\([^()\n]{{1,12}}\))?"
    r" ?씨(?=[가-힣]{0,3}(?![가-힣]))"
)
# Parts of an address; names of so many syllables do not end like this.
_ADDRESS = re.compile(r"[가-힣]{2,}(?:특별시|광역시|대로)|[가-힣]{3,}(?:시|구|군|로|동|역)")
# What papers are called. Alone on a line, the dictionary takes such a word for a name.
_PAPER = re.compile(
    r"[가-힣]*(?:계약서|신청서|확인서|증명서|보고서|계획서|명세서|동의서|견적서|사직서|진단서|서약서|"
    r"위임장|추천서|이력서|자기소개서|회의록|안내문|공고문|통지서|고지서|영수증|제안서|설명서|지침서)"
)
_SPACED = re.compile(rf"(?<![가-힣])([{_ONE}] [가-힣] [가-힣])(?= ?(?:귀하|님|씨|드림|올림))")


def find_korean_names(text: str) -> Iterator[Span]:
    """Yield names of persons in Korean letters."""
    if not _HANGUL.search(text):
        return
    for match in _PIECE.finditer(text):
        if _HANGUL.search(match[0]):
            for begin, end in _in_piece(match[0]):
                yield Span(match.start() + begin, match.start() + end, Kind.PERSON)


def _in_piece(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_LABELLED, _SHORT_TITLED, _SPACED):
        for match in pattern.finditer(text):
            if not _is_word(match[1]):
                yield match.span(1)
    tokens = tokens_of(text)
    for stem in stems_of(tokens):
        form = text[stem.begin : stem.end]
        if _is_word(form) or "[" in form:
            continue
        if _is_full_name(text, tokens, stem) or probability(text, tokens, stem) >= THRESHOLD:
            yield stem.begin, stem.end


def probability(text: str, tokens: list, stem: Stem) -> float:  # type: ignore[type-arg]
    """Return how likely a stem is the name of a person."""
    weights = _weights()
    total = sum(weights.get(feature, 0.0) for feature in features(text, tokens, stem))
    return 1 / (1 + exp(-max(-30.0, min(30.0, total))))


def _is_full_name(text: str, tokens: list, stem: Stem) -> bool:  # type: ignore[type-arg]
    """Whether it has a surname and two more syllables, is no noun of the dictionary, and a title
    follows.
    """
    form = text[stem.begin : stem.end]
    if len(form) != 3 or not (form[0] in SURNAMES or form.startswith(LONG_SURNAMES)):
        return False
    inside = tokens[stem.first : stem.last + 1]
    known = len(inside) == 1 and inside[0].tag == "NNG"
    return not known and title_follows(text, tokens, stem) != "no"


def _is_word(form: str) -> bool:
    if _ADDRESS.fullmatch(form) or _PAPER.fullmatch(form):
        return True
    return form in NO_NAMES or form in TITLES or form in ROLES or form in PLACES


@functools.cache
def _weights() -> dict[str, float]:
    """Return what each sign is worth."""
    file = resources.files("headrace_ingest.masking") / "korean_name_weights.json"
    weights: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))["weights"]
    return weights
