"""Fingerprints of errors: the same for all failures that differ only in ids, numbers and names.

Fingerprints are stored, so the same failure keeps its fingerprint in every process and version. A
change of these rules splits every group in two: the table in the tests pins them.
"""

from __future__ import annotations

import re
from hashlib import sha256

# More of a message is not looked at. Less than is stored of it, so that a stored message and the
# error that it came from have the same fingerprint.
LOOKED_AT = 2_000
# A normalised message is not longer.
NORMALISED_LIMIT = 200

# Each alternative reads a character at most twice (possessive, or anchored at its beginning), so
# that no message takes long. ASCII: what a letter is elsewhere changes with Python's version.
_VARIABLE = re.compile(
    r"""
    (?P<quoted>  (?<![\w'"`]) b?
                 (?: '[^'\0]*+(?:'(?!\w)|\0) | "[^"\0]*+(?:"(?!\w)|\0) | `[^`\0]*+[`\0] ) )
    | (?P<email> (?<![\w.+%-]) [\w.+%-]++ @ [\w.-]++ )
    | (?P<time>  (?<![\w-]) \d{4}-\d\d-\d\d (?: [T\ ]\d\d:\d\d(?::\d\d)?(?:[.,]\d++)?
                 (?: Z | \ ?[+-]\d\d:?\d\d )? )? (?!\w) )
    | (?P<uuid>  (?<!\w) [0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12} (?!\w) )
    | (?P<hex>   (?<!\w) 0[xX][0-9a-fA-F]++ )
    | (?P<query> (?<=[\w/]) \? [^\s'"<>)]*+ )
    | (?P<path>  (?<= [/\\] ) [^\s/\\'"`?:,;()<>\[\]{}\0]++ )
    | (?P<number> (?<!\w) (?: (?<![\w)\]]) [+-] )? \d++ (?: [.,:]\d++ )*+ (?: [eE][+-]?\d++ )?
                  (?![A-Za-z0-9_]) )
    | (?P<word>  [A-Za-z0-9]++ )
    """,
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"[ \t\r\n\f\v]+")
_DIGITS = re.compile(r"[0-9]+")
_HEX = re.compile(r"[0-9a-fA-F]{6,}")
# What `tempfile` calls its files.
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}")
_LONG_WORD = 16


def normalised(message: str) -> str:
    """Return a message without what differs from one failure to the next: the contents of quotes,
    numbers, times, ids, addresses in memory, e-mail addresses, and parts of paths with digits.
    """
    text = message[:LOOKED_AT].replace("\0", "\ufffd")
    if len(message) > LOOKED_AT:
        # Closes a quote of which the end was cut off.
        text += "\0"
    text = _VARIABLE.sub(_constant, text).replace("\0", "")
    return _SPACE.sub(" ", text).strip(" ")[:NORMALISED_LIMIT]


def fingerprint(error_type: str, message: str) -> str:
    """Return 16 hexadecimal digits that failures with the same cause share, as far as their type
    and message tell.
    """
    described = f"{error_type}\n{normalised(message)}"
    return sha256(described.encode("utf-8", "replace")).hexdigest()[:16]


def _constant(found: re.Match[str]) -> str:
    text, kind = found.group(), found.lastgroup
    if kind == "quoted":
        quote = text.removeprefix("b")[0]
        return f"{quote}…{quote}"
    if kind == "query":
        return "?…"
    if kind == "path":
        return "<name>" if _DIGITS.search(text) or _TEMPORARY.fullmatch(text) else text
    if kind == "word":
        return _word(text)
    return f"<{kind}>"


def _word(text: str) -> str:
    """Return a word without numbers; <id> for one that looks like an id or a checksum."""
    if not _DIGITS.search(text):
        return text
    if len(text) >= _LONG_WORD or _HEX.fullmatch(text):
        return "<id>"
    return _DIGITS.sub("<number>", text)
