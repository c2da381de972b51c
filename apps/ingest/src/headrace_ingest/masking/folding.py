"""One spelling for characters that look alike, so that rules need to know only one. No I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

# Full-width forms of ASCII, hyphens and dashes, and spaces that are no space.
_ALIKE = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_ALIKE |= dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"), "-")
_ALIKE |= dict.fromkeys(map(ord, "\u00a0\u2000\u2002\u2003\u2007\u2009\u200a\u202f\u3000\t"), " ")
# What is not seen, and would split a number or an address in two.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
# The Korean vowel that some type for a dash between digits.
_VOWEL_DASH = re.compile("(?<=[0-9])[\u3161\u30fc\u4e00](?=[0-9])")


class Folded(NamedTuple):
    """A text in one spelling. `offsets` are the places of its characters in the original, with the
    end as the last one, or None if they are the same.
    """

    text: str
    offsets: list[int] | None

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """Return where `text[begin:end]` is in the original."""
        if self.offsets is None:
            return begin, end
        return self.offsets[begin], self.offsets[end - 1] + 1


def fold(text: str) -> Folded:
    """Return the text in one spelling."""
    offsets: list[int] | None = None
    if _UNSEEN.search(text):
        offsets = [place for place, char in enumerate(text) if not _UNSEEN.match(char)]
        text = "".join(text[place] for place in offsets)
    return Folded(_VOWEL_DASH.sub("-", text.translate(_ALIKE)), offsets)
