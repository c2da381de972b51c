"""Rules for keys and tokens that open an account by themselves. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace_ingest.masking.kinds import Kind, Span

_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}"
    r"|(?:AKIA|ASIA|AGPA|AIDA|AROA)[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|dt|rt|ft|soat)-[A-Za-z0-9_-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}"
    r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|key-[0-9a-f]{32}|(?:AC|SK)[0-9a-f]{32}"
    r"|shp(?:at|ss|ca)_[a-fA-F0-9]{20,}|sq0[a-z]{3}-[A-Za-z0-9_-]{20,}|lin_api_[A-Za-z0-9]{20,}"
    # Any other word of a few letters before a long mixture of letters and digits.
    r"|[a-z]{2,8}_(?=[A-Za-z0-9]{0,99}[0-9])(?=[A-Za-z0-9]{0,99}[A-Z])(?=[A-Za-z0-9]{0,99}[a-z])"
    r"[A-Za-z0-9]{24,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r")(?![A-Za-z0-9])"
)
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_PRIVATE_END = re.compile(r"-----END [A-Z ]{0,30}PRIVATE KEY-----")
_LONGEST_PRIVATE = 20_000
_NAMED = re.compile(
    r"(?:(?:api|access|secret|auth|client|service|private|encryption|signing)[ _-]?"
    r"(?:key|token|secret)(?:[ _-]?id)?"
    r"|\b(?:token|secret|bearer|apikey|x-api-key)\b"
    r"|(?:API|인증|비밀|액세스|서비스) ?키|시크릿(?: ?키)?|토큰)"
    r"(?:은|는|이|가|을|를|값은)?[\"']?(?: is)?[ :=]{1,4}[\"'`]?"
    r"((?=[A-Za-z_./+=-]*\d)(?=[\d_./+=-]*[A-Za-z])[A-Za-z0-9_./+=-]{16,512})",
    re.IGNORECASE,
)


def find_secrets(text: str) -> Iterator[Span]:
    """Yield keys with a known beginning, and long values that are called a key."""
    for match in _PREFIXED.finditer(text):
        yield Span(match.start(), match.end(), Kind.API_KEY)
    yield from _private_keys(text)
    for match in _NAMED.finditer(text):
        yield Span(match.start(1), match.end(1), Kind.API_KEY)


def _private_keys(text: str) -> Iterator[Span]:
    """Yield blocks of private keys; one that is cut off ends with the text, or at the limit."""
    begin = _PRIVATE.search(text)
    while begin:
        limit = min(len(text), begin.end() + _LONGEST_PRIVATE)
        end = _PRIVATE_END.search(text, begin.end(), limit)
        stop = end.end() if end else limit
        yield Span(begin.start(), stop, Kind.API_KEY)
        begin = _PRIVATE.search(text, stop)
