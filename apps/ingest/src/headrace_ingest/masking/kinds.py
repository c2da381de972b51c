"""The kinds of personal data, and what is found of them in a text. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """A kind of personal data. Where two overlap, the earlier one names both."""

    API_KEY = "api_key"
    EMAIL = "email"
    RESIDENT_NUMBER = "resident_number"
    CARD = "card"
    DRIVER_LICENCE = "driver_licence"
    PASSPORT = "passport"
    US_SSN = "us_ssn"
    PHONE = "phone"
    ACCOUNT = "account"
    IP_ADDRESS = "ip_address"
    PERSON = "person"

    @property
    def mask(self) -> str:
        """What stands in the text instead, such as `[PHONE]`."""
        return f"[{self.value.upper()}]"


RANK = {kind: rank for rank, kind in enumerate(Kind)}
MASKS = re.compile("|".join(re.escape(kind.mask) for kind in Kind))


class Span(NamedTuple):
    """Personal data at `text[begin:end]`."""

    begin: int
    end: int
    kind: Kind


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, of which no two overlap and which cover all that was given.

    Spans that overlap become one: to keep a part of either would show what was to be hidden.
    """
    merged: list[Span] = []
    for span in sorted(spans):
        if span.begin >= span.end:
            continue
        last = merged[-1] if merged else None
        if last is not None and span.begin < last.end:
            kind = min(last.kind, span.kind, key=RANK.__getitem__)
            merged[-1] = Span(last.begin, max(last.end, span.end), kind)
        else:
            merged.append(span)
    return merged


def outside(spans: Iterable[Span], taken: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the spans, without what lies in the ranges `taken`."""
    kept: list[Span] = []
    for span in spans:
        begin = span.begin
        for low, high in taken:
            if high <= begin or low >= span.end:
                continue
            if low > begin:
                kept.append(Span(begin, low, span.kind))
            begin = high
        if begin < span.end:
            kept.append(Span(begin, span.end, span.kind))
    return kept
