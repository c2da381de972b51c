"""Find personal data in a text, and mask it. No I/O, but the first call loads a dictionary."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import korean_pii  # type: ignore[import-untyped]

from headrace_ingest.chunking import Chunk
from headrace_ingest.masking.contacts import find_contacts
from headrace_ingest.masking.english_names import find_english_names
from headrace_ingest.masking.folding import fold
from headrace_ingest.masking.identities import find_identities
from headrace_ingest.masking.kinds import MASKS, Kind, Span, merge, outside
from headrace_ingest.masking.korean_names import find_korean_names
from headrace_ingest.masking.money import find_money
from headrace_ingest.masking.secrets import find_secrets

# Its rule for accounts takes any number after a word such as "우리" for one, that for resident
# numbers the numbers of firms, and that for e-mail the square of the time: those are not used.
_KOREAN_PII = {
    "phone": Kind.PHONE,
    "card": Kind.CARD,
    "api_key": Kind.API_KEY,
}


def _find_korean_pii(text: str) -> Iterator[Span]:
    for name, kind in _KOREAN_PII.items():
        for found in korean_pii.detectors.DETECTORS[name](text):
            yield Span(found.start, found.end, kind)


Rule = Callable[[str], Iterable[Span]]
RULES: tuple[Rule, ...] = (
    find_secrets,
    find_contacts,
    find_identities,
    find_money,
    _find_korean_pii,
    find_korean_names,
    find_english_names,
)
NAME_RULES: tuple[Rule, ...] = (find_korean_names, find_english_names)


class Masked(NamedTuple):
    """A text without personal data, and how much of each kind was in it."""

    text: str
    found: Counter[str]


class MaskedChunks(NamedTuple):
    """Chunks without personal data, and how much of each kind was in the whole text."""

    chunks: list[Chunk]
    found: Counter[str]


def find(text: str, *, names: bool = True) -> list[Span]:
    """Return the personal data in a text, in order, without overlaps.

    What is masked already is not found again, and what shows only beside a mask is found too.
    `names`: whether names of persons are looked for as well.
    """
    rules = RULES if names else tuple(rule for rule in RULES if rule not in NAME_RULES)
    spans: list[Span] = []
    while True:
        masked, places = _apply(text, spans)
        fresh = _find_once(masked, rules)
        if not fresh:
            return spans
        spans = merge([*spans, *(_translate(span, places) for span in fresh)])


def mask(text: str) -> Masked:
    """Return the text with each piece of personal data replaced by its kind, such as `[PHONE]`.

    Masking the result again changes nothing.
    """
    spans = find(text)
    return Masked(_apply(text, spans)[0], count(spans))


def mask_chunks(text: str, chunks: Sequence[Chunk], *, names: bool = True) -> MaskedChunks:
    """Return the chunks of a text, masked. Their offsets remain those in the unmasked text.

    Personal data is searched for in the whole text: what the border of a chunk cuts in two is
    masked in both chunks.
    """
    return apply_to_chunks(chunks, find(text, names=names))


def apply_to_chunks(chunks: Sequence[Chunk], spans: Sequence[Span]) -> MaskedChunks:
    """Return the chunks of a text with what was found in it masked."""
    ends = [span.end for span in spans]
    masked = []
    for chunk in chunks:
        inside = []
        for span in spans[bisect.bisect_right(ends, chunk.begin) :]:
            if span.begin >= chunk.end:
                break
            inside.append(
                Span(
                    max(span.begin, chunk.begin) - chunk.begin,
                    min(span.end, chunk.end) - chunk.begin,
                    span.kind,
                )
            )
        masked.append(Chunk(chunk.order, chunk.begin, chunk.end, _apply(chunk.text, inside)[0]))
    return MaskedChunks(masked, count(spans))


def count(spans: Iterable[Span]) -> Counter[str]:
    """Return how many there are of each kind."""
    return Counter(span.kind.value for span in spans)


def _find_once(text: str, rules: Sequence[Rule]) -> list[Span]:
    folded = fold(text)
    spans = []
    for rule in rules:
        for span in rule(folded.text):
            begin, end = folded.original(span.begin, span.end)
            spans.append(Span(begin, end, span.kind))
    return merge(outside(spans, [match.span() for match in MASKS.finditer(text)]))


class _Piece(NamedTuple):
    """Where a part of the masked text came from. A mask came from the whole of its span."""

    masked: int
    begin: int
    end: int
    is_mask: bool


def _apply(text: str, spans: Sequence[Span]) -> tuple[str, list[_Piece]]:
    """Return the text with the spans masked, and where each of its parts came from."""
    parts: list[str] = []
    pieces: list[_Piece] = []
    length = before = 0
    for span in spans:
        for part, begin, end, is_mask in (
            (text[before : span.begin], before, span.begin, False),
            (span.kind.mask, span.begin, span.end, True),
        ):
            pieces.append(_Piece(length, begin, end, is_mask))
            parts.append(part)
            length += len(part)
        before = span.end
    pieces.append(_Piece(length, before, len(text), False))
    parts.append(text[before:])
    return "".join(parts), pieces


def _translate(span: Span, pieces: list[_Piece]) -> Span:
    """Return where a span of the masked text is in the original."""
    starts = [piece.masked for piece in pieces]

    def place(offset: int, *, is_end: bool) -> int:
        piece = pieces[bisect.bisect_right(starts, offset - is_end) - 1]
        if piece.is_mask:
            return piece.end if is_end else piece.begin
        return piece.begin + offset - piece.masked

    return Span(place(span.begin, is_end=False), place(span.end, is_end=True), span.kind)
