"""Rules for card numbers and bank accounts. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace_ingest.masking.kinds import Kind, Span

_CARD = re.compile(
    r"(?<![\d-])(?:\d{4}(?:[ .-]{1,2}\d{4}){3}(?:[ .-]{1,2}\d{3})?"
    r"|\d{4}[ .-]\d{6}[ .-]\d{4,5}|\d{13,19})"
    r"(?![\d]|-\d)"
)
_CARD_BEGINS = re.compile(r"4|5[0-8]|2[2-7]|3[0-9]|6|9|1800|2131")

_BANKS = (
    "은행|뱅크|농협|수협|신협|우체국|새마을금고|축협|증권|국민|신한|우리|하나|기업"
    "|KB|IBK|NH|SC제일|케이뱅크|카뱅|토스"
)
_ACCOUNT_WORDS = r"계좌|통장|입금|송금|이체|예금|환불|급여"
_ACCOUNT = re.compile(
    r"(?<![\d-])\d{2,6}(?:[- ]\d{1,7}){1,4}(?![\d]|-\d)|(?<![\d-])\d{10,14}(?![\d]|-\d)"
)
_BEFORE = re.compile(
    rf"(?:(?:{_ACCOUNT_WORDS})[^\d\n]{{0,25}}"
    rf"|(?:{_BANKS})(?:은행|뱅크)?(?: ?계좌)?(?: ?번호)?[^\d\n가-힣]{{0,6}})$"
)
_AFTER = re.compile(
    rf"^ ?[(\[,/]? ?(?:예금주|[가-힣A-Z]{{1,5}}(?:은행|뱅크)|(?:{_ACCOUNT_WORDS})"
    r"|농협|수협|신협|우체국|새마을금고)"
    r"|^ ?(?:계좌|통장)"
)
_BUSINESS = re.compile(r"\d{3}-\d{2}-\d{5}")
_DATE = re.compile(r"(?:19|20)\d\d[- ]\d{1,2}[- ]\d{1,2}(?:[- ]\d+)*")
_ENGLISH_ACCOUNT = re.compile(
    r"(?:\b(?:bank )?(?:account|acct|a/c)\b\.?|\brouting\b)"
    r"(?: (?:number|no\.?|num|#|is|ending in))*[ :#.=]{0,4}"
    r"((?:\d[ -]?){7,16}\d)(?![\d]|-\d)",
    re.IGNORECASE,
)
_ENGLISH_BANK = re.compile(
    r"(?i:\bbank\b|\baccount\b)[^\d\n]{0,20}(?<![\d-])(\d{3,6}(?:-\d{2,7}){1,3})(?!\d|-\d)"
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)


def find_money(text: str) -> Iterator[Span]:
    """Yield card numbers whose last digit is right, and accounts that are named so."""
    cards = []
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if 13 <= len(digits) <= 19 and _CARD_BEGINS.match(digits) and luhn(digits):
            cards.append(match.span())
            yield Span(match.start(), match.end(), Kind.CARD)
    for match in _ACCOUNT.finditer(text):
        if match.span() not in cards and _is_account(match, text):
            yield Span(match.start(), match.end(), Kind.ACCOUNT)
    for match in _ENGLISH_ACCOUNT.finditer(text):
        yield Span(match.start(1), match.end(1), Kind.ACCOUNT)
    for match in _ENGLISH_BANK.finditer(text):
        if 10 <= sum(char.isdigit() for char in match[1]) <= 14 and not _DATE.fullmatch(match[1]):
            yield Span(match.start(1), match.end(1), Kind.ACCOUNT)
    for match in _IBAN.finditer(text):
        if is_iban(match[0]):
            yield Span(match.start(), match.end(), Kind.ACCOUNT)


def luhn(digits: str) -> bool:
    """Return whether the last digit is the one that the others ask for (ISO/IEC 7812)."""
    doubled = [int(d) * (1 + place % 2) for place, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_iban(number: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 7064, mod 97)."""
    plain = number.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _is_account(match: re.Match[str], text: str) -> bool:
    digits = sum(char.isdigit() for char in match[0])
    if not 10 <= digits <= 14 or _DATE.fullmatch(match[0]):
        return False
    before = text[max(0, match.start() - 40) : match.start()]
    named = _BEFORE.search(before)
    if _BUSINESS.fullmatch(match[0]):
        # So are the numbers of firms written: only the word itself makes it an account.
        return bool(re.search(r"(?:계좌|통장)[^\d\n]{0,15}$", before))
    return bool(named or _AFTER.search(text[match.end() : match.end() + 15]))
