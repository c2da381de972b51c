"""From the bytes of a page to its text. No I/O."""

from __future__ import annotations

import codecs
import re

# So far into a page browsers look for its charset, too.
LOOKED_AT = 4096
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What pages call them, and what they are: cp949 has all of euc-kr and the other half of Hangul.
_KOREAN = {"euc-kr", "euckr", "ks_c_5601-1987", "ksc5601", "ks_c_5601", "cp949", "ms949", "uhc"}


def decode(content: bytes, content_type: str = "") -> str:
    """Return the text of a page. The page itself is believed before the header, which servers send
    for all pages alike; what does not fit the bytes is not believed.
    """
    claims = [codec for mark, codec in _MARKS if content.startswith(mark)]
    if found := _META.search(content[:LOOKED_AT]):
        claims.append(found.group(1).decode("ascii"))
    if named := _HEADER.search(content_type):
        claims.append(named.group(1))
    known = [codec for claim in claims if (codec := _codec(claim)) is not None]
    for codec in [*known, "utf-8", "cp949"]:
        try:
            return content.decode(codec)
        except UnicodeError:
            continue
    return content.decode(known[0] if known else "utf-8", "replace")


def _codec(claim: str) -> str | None:
    name = claim.lower()
    if name in _KOREAN:
        return "cp949"
    try:
        info = codecs.lookup(name)
    except LookupError:
        return None
    # Python has codecs that are none of text.
    return info.name if info._is_text_encoding else None
