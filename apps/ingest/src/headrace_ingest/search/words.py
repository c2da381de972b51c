"""The words of a text as numbers, for the small word score beside the vectors. No I/O.

Korean words carry their particles at their end (휴가를, 휴가는), so hangul counts by pairs of
letters; other words count whole. Numbers are kept instead of words: they are small to store, and
load into numpy without being read again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Terms: TypeAlias = "npt.NDArray[np.uint32]"

_STORED = "<u4"
_WORD = re.compile(r"[가-힣]+|[^\W_가-힣]+(?:_+[^\W_가-힣]+)*")
_HANGUL = re.compile("[가-힣]")
# So frequent that they say nothing, in a question above all.
_STOP = frozenset(
    """a an and are as at be by can do does for from how i if in into is it its me my of on or
    should so that the their them there this to was we what when where which who why will with you
    your""".split()  # noqa: SIM905 - words are easier to read in a row
)


def terms_of(text: str) -> Terms:
    """Return the numbers of the different words of a text, in ascending order."""
    import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

    found = {crc32(word.encode()) for word in words_of(text)}
    return np.fromiter(sorted(found), np.uint32, len(found))


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text as they count: pairs of hangul letters, other words without the
    -s of their plural; names such as `send_file` also by their parts.
    """
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).lower()):
        word = match.group()
        if _HANGUL.match(word):
            yield from pairs_of(word)
        elif word not in _STOP:
            yield singular(word)
            if "_" in word:
                yield from (singular(part) for part in word.split("_") if part)


def pairs_of(word: str) -> Iterator[str]:
    """Yield the pairs of letters of a Korean word; one of a single letter as it is."""
    if len(word) == 1:
        yield word
    for place in range(len(word) - 1):
        yield word[place : place + 2]


def singular(word: str) -> str:
    """Return a word without the -s of its plural, if it seems to have one."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def pack(terms: Terms) -> bytes:
    """Return the numbers as they are stored."""
    return terms.astype(_STORED).tobytes()


def unpack(stored: bytes) -> Terms:
    """Return the numbers that were stored."""
    import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

    return np.frombuffer(stored, _STORED).astype(np.uint32)
