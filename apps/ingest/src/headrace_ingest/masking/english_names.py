"""Rules for names of persons in Latin letters: a title, a label or a common given name. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace_ingest.masking.kinds import Kind, Span
from headrace_ingest.masking.words import words

_GIVEN = words("english_given")
# Words that follow a given name and make it the name of something else.
_NOT_SURNAMES = words("english_not_surnames")
_WORD = (
    r"[A-Z][a-zà-ÿ]+(?:['\u2019-][A-Z][a-zà-ÿ]+)?|[A-Z]['\u2019][A-Z][a-z]+(?:-[A-Z][a-z]+)?"
    r"|Ma?c[A-Z][a-z]+"
)
_NAME = rf"(?:{_WORD})(?: (?:[A-Z]\.|{_WORD}|de|van|von|bin|al|da|del|la)){{0,3}}"
_TITLED = re.compile(
    rf"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Sir|Madam|Rev|Capt|Sgt"
    rf"|Judge|Attorney|Nurse)\.? ({_NAME})"
)
_LABELLED = re.compile(
    r"(?:\b(?i:(?:full |first |last |sur|customer |employee |patient |applicant |account holder"
    r" |cardholder )?name|applicant|employee|patient|customer|attn|contact|contact person"
    r"|signed(?: by)?|approved by|prepared by|reviewed by|submitted by|author|manager|recipient"
    r"|sender|cardholder|interviewer|candidate) ?[:=] ?"
    r"|\b(?i:my name is|name is|this is|I am|I'm|dear|regards,|sincerely,|hi|hello),? ?)"
    rf"({_NAME})"
)
_CALLED = re.compile(
    rf"\b(?:{'|'.join(sorted(_GIVEN))})(?:-[A-Z][a-z]+)?(?: [A-Z]\.)?((?: (?:{_WORD})){{1,2}})"
)
# Korean names in Latin letters: Kim Minjae, HONG YERIN, Min-ji Seo.
_KOREAN_SURNAMES = "|".join(sorted(words("english_korean_surnames")))
_KOREAN = re.compile(
    rf"\b(?:{_KOREAN_SURNAMES}) (?!Kong\b)[A-Z][a-z]{{2,}}(?:-[a-z]{{2,}})?\b"
    r"(?! (?:Inc|Ltd|Bank))"
    rf"|\b(?:{_KOREAN_SURNAMES.upper()}) (?!KONG\b)[A-Z]{{3,}}(?:-[A-Z]{{2,}})?\b"
    rf"|\b[A-Z][a-z]+-[a-z]{{2,}} (?:{_KOREAN_SURNAMES}|Park|Song|Han|Oh|Yoo)\b"
)
_PARTNER = re.compile(
    rf"\b(?i:taken by|written by|signed by|spoke with|met with|meeting with|witness,?|patient"
    rf"|tenant|employee|customer|client|candidate|applicant|colleague)"
    rf" ((?:{_WORD})(?: (?:{_WORD})){{1,2}})"
)
# Not after "dear", "hi" and "I am": a word that everybody begins with a capital.
_COMMON = words("english_common")


def find_english_names(text: str) -> Iterator[Span]:
    """Yield names after a title or a label, and those that begin with a common given name."""
    for match in _TITLED.finditer(text):
        yield _trimmed(match, 1)
    for match in _LABELLED.finditer(text):
        if match[1].split()[0] not in _COMMON:
            yield _trimmed(match, 1)
    for match in _CALLED.finditer(text):
        rest = match[1].split()
        if _NOT_SURNAMES.isdisjoint((rest[0], rest[-1])):
            end = match.end() if rest[-1] not in _COMMON else match.start(1) + 1 + len(rest[0])
            yield Span(match.start(), end, Kind.PERSON)
    for match in _KOREAN.finditer(text):
        yield Span(match.start(), match.end(), Kind.PERSON)
    for match in _PARTNER.finditer(text):
        if _COMMON.isdisjoint(match[1].split()) and _NOT_SURNAMES.isdisjoint(match[1].split()):
            yield Span(match.start(1), match.end(1), Kind.PERSON)


def _trimmed(match: re.Match[str], group: int) -> Span:
    """Return the name without words at its end that are no part of one."""
    parts = match[group].split(" ")
    while len(parts) > 1 and (parts[-1] in _COMMON or parts[-1][0].islower()):
        parts.pop()
    begin = match.start(group)
    return Span(begin, begin + len(" ".join(parts)), Kind.PERSON)
