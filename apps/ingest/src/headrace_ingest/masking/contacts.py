"""Rules for phone numbers, e-mail addresses and IP addresses. No I/O."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

import phonenumbers
from phonenumbers import Leniency, PhoneNumberMatcher

from headrace_ingest.masking.kinds import Kind, Span

_GAP = r"[ .·/()-]{0,3}"
_KOREAN = re.compile(
    r"(?<![\d.-])"
    r"(?:\(?\+?\(?82\)?" + _GAP + r"(?:\(0\)|0)?" + _GAP + r"|\(?0)"
    r"(?:"
    r"1[016789]\)?" + _GAP + r"\d{3,4}" + _GAP + r"\d{4}"
    r"|(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4]|70|50[2-8])\)?[ .·/()-]{1,3}\d{3,4}[ .·/()-]{1,3}\d{4}"
    r")(?!\d|-\d)"
)
# Read out: 공일공 일이삼사 오육칠팔.
_SPOKEN = re.compile(
    r"(?<![가-힣])[공영]일[공영일육칠팔구](?:[ -]?[공영일이삼사오육칠팔구]){7,8}(?![가-힣])"
    r"|(?<![가-힣])[공영]일[공영일육칠팔구](?:[ -]?[공영일이삼사오육칠팔구]){7,8}"
    r"(?=[이가은는을를으로에])"
)
_CALLED = re.compile(
    r"(?:전화|연락처|휴대폰|핸드폰|휴대전화|팩스|문자|\b(?:tel|telephone|phone|mobile|cell|fax|whatsapp"
    r"|call(?: me| us| him| her)?|text me|reach me|dial)\b)"
    r"[^\d\n+(]{0,20}(\(?\+?\d[\d .()/-]{6,20}\d)(?!\d|-\d)",
    re.IGNORECASE,
)
_BRITISH = re.compile(
    r"(?<![\d.-])\(?0(?:20\)? [378]\d{3} \d{4}|7\d{3} \d{6}|1\d{3}\)? \d{6})(?!\d)"
)
_NORTH_AMERICAN = re.compile(
    r"(?<![\d.-])(?:\+?1[ .-]?)?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}(?!\d|-\d)"
)
# Every part is bounded: a long line without an address must not take the square of its length.
_EMAIL = re.compile(
    r"[\w.!#$%&'*+/=?^`{|}~-]{0,63}\w(?:@| ?(?:\(at\)|\[at\]|\{at\}|골뱅이) ?)"
    r"(?:[A-Za-z0-9가-힣-]{1,63}(?:\.| ?(?:\(dot\)|\[dot\]|\{dot\}) ?)){1,8}"
    r"(?:[A-Za-z]{2,24}|한국)(?![A-Za-z0-9])",
    re.IGNORECASE | re.ASCII,
)
_SPELLED_EMAIL = re.compile(
    r"\b[a-z0-9._+-]{1,64} at [a-z0-9-]{1,63}(?: dot [a-z0-9-]{1,63}){0,3}"
    r" dot (?:com|net|org|edu|io|co|kr|uk|de)\b",
    re.IGNORECASE,
)
_IPV4 = re.compile(r"(?<![\d.\w-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])[0-9a-fA-F:]{2,39}(?<!:)(?![\w:])|(?<![\w:.])[0-9a-fA-F:]{2,38}::(?![\w:])"
)
_VERSION = re.compile(r"(?:\bv|version|release|버전|판|build|v\.)[ :=]{0,2}$", re.IGNORECASE)


def find_contacts(text: str) -> Iterator[Span]:
    """Yield phone numbers, e-mail addresses and IP addresses."""
    for span in _phones(text):
        number = text[span.begin : span.end]
        # A bracket that is closed behind the number is no part of it.
        yield span._replace(
            begin=span.begin + (number[0] == "(" and number.count("(") > number.count(")"))
        )
    for pattern in (_EMAIL, _SPELLED_EMAIL):
        for match in pattern.finditer(text):
            yield Span(match.start(), match.end(), Kind.EMAIL)
    for pattern in (_IPV4, _IPV6):
        for match in pattern.finditer(text):
            if _is_address(match[0]) and not _VERSION.search(text[: match.start()][-10:]):
                yield Span(match.start(), match.end(), Kind.IP_ADDRESS)


def _phones(text: str) -> Iterator[Span]:
    for pattern in (_KOREAN, _BRITISH, _SPOKEN):
        for match in pattern.finditer(text):
            yield Span(match.start(), match.end(), Kind.PHONE)
    for match in _CALLED.finditer(text):
        digits = sum(char.isdigit() for char in match[1])
        if 7 <= digits <= 15 and not _is_date(match[1]):
            yield Span(match.start(1), match.end(1), Kind.PHONE)
    for match in _NORTH_AMERICAN.finditer(text):
        if _valid_us(match[0]):
            yield Span(match.start(), match.end(), Kind.PHONE)
    if "+" in text:
        for found in PhoneNumberMatcher(text, None, leniency=Leniency.POSSIBLE):
            yield Span(found.start, found.end, Kind.PHONE)


def _valid_us(number: str) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number, "US"))
    except phonenumbers.NumberParseException:
        return False


def _is_date(number: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d[ .-]{1,2}\d{1,2}[ .-]{1,2}\d{1,2}[ .]?", number) is not None


def _is_address(address: str) -> bool:
    """Whether it is the address of one machine: no mask, no loopback, no "any"."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (parsed.is_loopback or parsed.is_unspecified or address.startswith("255."))
