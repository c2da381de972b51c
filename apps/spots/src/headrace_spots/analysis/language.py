"""What language a text is in, by its script, and how texts are made alike before they are read."""

from __future__ import annotations

import re
import unicodedata

KOREAN = "ko"
ENGLISH = "en"
LONGEST = 4000

_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_SPACES = re.compile(r"\s+")
_REPEATED = re.compile(r"(.)\1{3,}")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "`": "'"})


def language_of(text: str) -> str:
    """Return `ko` where a text has a hangul letter for every four Latin ones or more, else `en`.

    A Korean sentence with the English name of a product is Korean. A text without any letters
    (`5/5`, emojis) is taken for English, whose model knows marks and emojis too.
    """
    hangul = len(_HANGUL.findall(text))
    return KOREAN if hangul and hangul * 4 >= len(_LATIN.findall(text)) else ENGLISH


def plain(text: str) -> str:
    """Return a text in NFC with plain quotation marks, at most 4,000 characters of it: the rest of
    a longer one is not read.
    """
    # A lone surrogate cannot be encoded; it comes from broken pages.
    text = text[: LONGEST * 3].encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", text).translate(_QUOTES)[:LONGEST]


def normalised(text: str) -> str:
    """Return a plain text in small letters, with single spaces and at most three of one letter in
    a row.
    """
    return _REPEATED.sub(r"\1\1\1", _SPACES.sub(" ", plain(text).lower()).strip())
