"""The sentences of a review. No I/O."""

from __future__ import annotations

import re

# A review is found by its best sentence. Very short ones go with the next; long ones are cut.
SHORTEST = 12
LONGEST = 240
MOST = 40
_END = re.compile(
    r"(?<=[.!?…~])[\"'”\u2019)\]]*\s+|(?<=[。\uff01\uff1f])\s*|\s*\n+\s*|(?<=ㅋㅋ)\s+|(?<=ㅎㅎ)\s+"
)
_HANGUL = re.compile("[가-힣]")
_SPACE = re.compile(r"[,;]\s|\s")


def split_sentences(text: str) -> list[str]:
    """Return the pieces of a review in their order, at most 40. Nothing but white space is lost of
    a text that is not longer than that.
    """
    found: list[str] = []
    waiting = ""
    for part in _END.split(text):
        piece = " ".join(part.split())
        if not piece:
            continue
        waiting = f"{waiting} {piece}" if waiting else piece
        # A letter of Hangul holds about as much as two of the Latin alphabet.
        if len(waiting) + len(_HANGUL.findall(waiting)) >= SHORTEST:
            found += _cut(waiting)
            waiting = ""
    if waiting:
        if found and len(found[-1]) + len(waiting) < LONGEST:
            found[-1] = f"{found[-1]} {waiting}"
        else:
            found.append(waiting)
    return found[:MOST]


def _cut(sentence: str) -> list[str]:
    parts: list[str] = []
    while len(sentence) > LONGEST:
        ends = [each.end() for each in _SPACE.finditer(sentence, LONGEST // 2, LONGEST)]
        end = ends[-1] if ends else LONGEST
        parts.append(sentence[:end].strip())
        sentence = sentence[end:].strip()
    return [*parts, sentence] if sentence else parts
