"""Cut a chunk into the pieces that get a vector each. No I/O.

A vector of a whole chunk is the mean of what is said in it, which no question is near to. A chunk
is therefore found by its best sentence.
"""

from __future__ import annotations

import re

# Sentence number of a vector that stands for the whole chunk.
WHOLE_CHUNK = 0
# Headings and list items say little alone; they go with what follows. A hangul letter counts twice:
# it holds about as much as two of the Latin alphabet.
SHORTEST = 24
# Longer ones are cut at a comma or a space.
LONGEST = 240

# After a full stop, question or exclamation mark (and what closes a quotation), if white space
# follows; after a Korean full stop; at an empty line; at a line that begins a list item.
_END = re.compile(
    r"(?<=[.!?…])[\"'”\u2019)\]」』]*\s+(?=\S)"
    r"|(?<=[。\uff01\uff1f])\s*"
    r"|\n\s*\n\s*"
    r"|\n(?=\s*(?:[-*•◦○●□■▪※]|\d{1,3}[.)]|[가-하][.)]|[①-⑳])\s?)"
)
# No end of a sentence: abbreviations, initials, and numbers of clauses such as "3. ".
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|no|fig|mr|mrs|ms|dr|prof|st|inc|ltd|co|approx|vol|pp?)\.|"
    r"\b[A-Z]\.|(?:^|\s)\d{1,3}\.|(?:^|\s)[가-하]\.)[\"')\]]*$",
    re.IGNORECASE,
)
_HANGUL = re.compile("[가-힣]")
_CUT = re.compile(r"[,;:\uff0c、]\s|\s")


def sentences(text: str) -> list[str]:
    """Return the pieces of a text, in their order: sentences, short ones joined, long ones cut.

    Nothing but white space is lost. Text without any yields none.
    """
    joined: list[str] = []
    waiting = ""
    for sentence in _split(text):
        waiting = f"{waiting} {sentence}" if waiting else sentence
        if len(waiting) + len(_HANGUL.findall(waiting)) >= SHORTEST:
            joined.extend(_cut(waiting))
            waiting = ""
    if waiting:
        if joined and len(joined[-1]) + len(waiting) < LONGEST:
            joined[-1] = f"{joined[-1]} {waiting}"
        else:
            joined.append(waiting)
    return joined


def _split(text: str) -> list[str]:
    found: list[str] = []
    begin = 0
    for match in _END.finditer(text):
        # What closes a quotation belongs to the sentence that it ends.
        end = match.start() + len(match.group().rstrip())
        piece = text[begin:end]
        if "\n" not in match.group() and _NO_END.search(piece[-12:]):
            continue
        found.append(piece)
        begin = end
    found.append(text[begin:])
    return [cleaned for piece in found if (cleaned := " ".join(piece.split()))]


def _cut(sentence: str) -> list[str]:
    parts: list[str] = []
    while len(sentence) > LONGEST:
        count = -(-len(sentence) // LONGEST)
        ideal = len(sentence) // count
        ends = [match.end() for match in _CUT.finditer(sentence, ideal // 2, LONGEST)]
        # A comma is worth some letters, because what is between commas is often a thought.
        end = min(
            ends,
            key=lambda place: (
                abs(place - ideal) - (30 if sentence[place - 2] in ",;\uff0c、" else 0)
            ),
            default=LONGEST,
        )
        parts.append(sentence[:end].strip())
        sentence = sentence[end:].strip()
    return [*parts, sentence] if sentence else parts
