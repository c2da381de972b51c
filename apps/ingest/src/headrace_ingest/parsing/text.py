"""Bytes of text files: which encoding they are in. No I/O."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE
)
# What people call euc-kr is nearly always its superset.
_MEANT = {"euc-kr": "cp949", "euc_kr": "cp949", "ks_c_5601-1987": "cp949", "ksc5601": "cp949"}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_USUAL = re.compile(
    r"[\s!-~가-힣ㄱ-ㆎ\u3000-\u30ff\u4e00-\u9fff\u2010-\u2027\u00a0-\u00ff\uff00-\uffef·…]"
)
_SAMPLE = 65_536


class Decoded(NamedTuple):
    """A text, and the encoding that it was in."""

    text: str
    encoding: str


def decode(data: bytes, *, html: bool = False) -> Decoded | None:
    """Return the text of a file in UTF-8, UTF-16, UTF-32, cp949 (euc-kr) or Windows-1252, or None
    if its bytes are no text. With `html`, what the page says of itself comes before a guess.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _attempt(data, encoding)
    declared = _CHARSET.search(data[:4096]) if html else None
    candidates = ["utf-8"]
    if declared:
        label = declared[1].decode("ascii").lower()
        candidates.append(_MEANT.get(label, label))
    candidates += [*_wide_guesses(data), "cp949", "utf-16-le", "utf-16-be", "cp1252"]
    for encoding in candidates:
        decoded = _attempt(data, encoding)
        if decoded is not None:
            return decoded
    return None


def clean(text: str) -> str:
    """Return the text composed (NFC), with `\\n` at the ends of lines, without characters that
    stores refuse: NUL, other control characters and lone surrogates.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    text = _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", text)


def _wide_guesses(data: bytes) -> list[str]:
    """UTF-16 without a mark shows by zeros at every second place, in text with some ASCII."""
    sample = data[:_SAMPLE]
    if len(sample) < 2:
        return []
    half = len(sample) // 2
    if sample[1::2].count(0) > half * 0.2 and sample[::2].count(0) < half * 0.02:
        return ["utf-16-le"]
    if sample[::2].count(0) > half * 0.2 and sample[1::2].count(0) < half * 0.02:
        return ["utf-16-be"]
    return []


def _attempt(data: bytes, encoding: str) -> Decoded | None:
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None
    sample = text[:_SAMPLE]
    if "\x00" in sample or len(_CONTROL.findall(sample)) > len(sample) * 0.01:
        return None
    if not encoding.startswith("utf-8"):
        # A wrong guess decodes too, into characters that hardly stand in one text.
        usual = len(_USUAL.findall(sample))
        if usual < len(sample) * 0.95:
            return None
        if encoding == "cp1252" and sum(char > "\x7f" for char in sample) > len(sample) * 0.2:
            return None
    return Decoded(text, "utf-8" if encoding == "utf-8-sig" else encoding)
