"""Rules for numbers that states give: resident number, SSN, passport, licence. No I/O."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

from headrace_ingest.masking.kinds import Kind, Span

_RESIDENT = re.compile(r"(?<![\d-])(\d{6})( ?- ?| |)([1-8])(\d{6})(?![\d]|-\d)")
_RESIDENT_NEAR = re.compile(r"주민|외국인 ?등록|거소 ?신고|resident reg|RRN", re.IGNORECASE)
_RESIDENT_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)

_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\d]|-\d)")
_SSN_PLAIN = re.compile(
    r"(?:\bSSN\b|social security|사회보장번호)[^\d\n]{0,60}"
    r"((?!000|666|9)\d{9}|\d{3}\.\d{2}\.\d{4})(?!\d)",
    re.IGNORECASE,
)

_PASSPORT_KOREAN = re.compile(r"(?<![A-Za-z0-9])[A-Z](?:\d{8}|\d{3}[A-Z]\d{4})(?![A-Za-z0-9])")
_PASSPORT_NAMED = re.compile(
    r"(?i:여권|passport)[^\n\d]{0,30}?(?<![A-Za-z0-9])"
    r"([A-Za-z]{0,2}\d{6,9}|[A-Z]\d{3}[A-Z]\d{4}"
    r"|(?=(?:[A-Z]*\d){3})(?=\d*[A-Z])[A-Z0-9]{8,9})(?![A-Za-z0-9]|-\d)"
)
_PASSPORT_NEAR = re.compile(r"여권|passport|비자|사증|\bvisa\b", re.IGNORECASE)

_REGIONS = "서울|부산|대구|인천|광주|대전|울산|경기|강원|충북|충남|전북|전남|경북|경남|제주"
_LICENSE = re.compile(
    r"(?<![\d-])(?:1[1-9]|2[0-8])[ -]\d{2}[ -]\d{6}[ -]\d{2}(?![\d]|-\d)"
    r"|(?:" + _REGIONS + r")[ -]?\d{2}[ -]\d{6}[ -]\d{2}(?![\d]|-\d)"
)
_LICENSE_GROUPED = re.compile(
    r"(?i:driver['\u2019]?s?['\u2019]? licen[cs]e)[^\n\d]{0,15}(\d{3} \d{3} \d{3})(?!\d| \d)"
)
_LICENSE_SHORT = re.compile(
    r"(?i:\blicen[cs]e)(?i: (?:no|number|num)\b\.?)?[ :#]{1,3}"
    r"((?=(?:[A-Z0-9-]*\d){5})[A-Z](?:[A-Z0-9]|-(?=[A-Z0-9])){6,18})(?![A-Za-z0-9]|-\d)"
)
_LICENSE_NAMED = re.compile(
    r"(?i:면허|driver['\u2019]?s?['\u2019]? licen[cs]e|driving licen[cs]e|\bDL\b)"
    r"[^\n\d]{0,25}?(?<![A-Za-z0-9-])"
    r"((?=(?:[A-Z0-9-]*\d){5})[A-Z0-9](?:[A-Z0-9]|-(?=[A-Z0-9])){5,18})(?![A-Za-z0-9]|-\d)"
)


def find_identities(text: str) -> Iterator[Span]:
    """Yield numbers that states give to persons."""
    for match in _RESIDENT.finditer(text):
        if _is_resident_number(match, text):
            yield Span(match.start(), match.end(), Kind.RESIDENT_NUMBER)
    for match in _SSN.finditer(text):
        yield Span(match.start(), match.end(), Kind.US_SSN)
    for match in _SSN_PLAIN.finditer(text):
        yield Span(match.start(1), match.end(1), Kind.US_SSN)
    for match in _PASSPORT_KOREAN.finditer(text):
        if _near(_PASSPORT_NEAR, text, match, 40):
            yield Span(match.start(), match.end(), Kind.PASSPORT)
    for match in _PASSPORT_NAMED.finditer(text):
        yield Span(match.start(1), match.end(1), Kind.PASSPORT)
    for match in _LICENSE.finditer(text):
        yield Span(match.start(), match.end(), Kind.DRIVER_LICENCE)
    for pattern in (_LICENSE_NAMED, _LICENSE_GROUPED, _LICENSE_SHORT):
        for match in pattern.finditer(text):
            yield Span(match.start(1), match.end(1), Kind.DRIVER_LICENCE)


def _is_resident_number(match: re.Match[str], text: str) -> bool:
    """With a hyphen the date is enough: numbers given since October 2020 have no check digit."""
    front, gap, sex, rest = match.groups()
    century = 1900 if sex in "1256" else 2000
    try:
        datetime.date(century + int(front[:2]), int(front[2:4]), int(front[4:]))
    except ValueError:
        return False
    if re.search(r"법인[^\d\n]{0,12}$", text[max(0, match.start() - 20) : match.start()]):
        return False  # the number of a firm is written alike
    return "-" in gap or _checks(front + sex + rest) or _near(_RESIDENT_NEAR, text, match, 30)


def _checks(digits: str) -> bool:
    total = sum(int(d) * weight for d, weight in zip(digits, _RESIDENT_WEIGHTS, strict=False))
    check = (11 - total % 11) % 10
    last = int(digits[12])
    return last == check or (digits[6] in "5678" and last == (check + 2) % 10)


def _near(words: re.Pattern[str], text: str, match: re.Match[str], reach: int) -> bool:
    """Whether one of the words stands shortly before or after."""
    around = text[max(0, match.start() - reach) : match.start()]
    return bool(words.search(around) or words.search(text[match.end() : match.end() + reach // 2]))
