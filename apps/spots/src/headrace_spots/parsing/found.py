"""Plain data that parsers find, and the rules for their values. No I/O."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import msgspec

LONGEST_TEXT = 5000
LONGEST_NAME = 200
BEST = 5.0
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)\s*[-./년]\s*(\d{1,2})\s*[-./월]\s*(\d{1,2})(?!\d)")
_TAG = re.compile(r"<[^<>]{0,300}>")


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A review as it is stored. `rating` is of 5. The name of its author is not stored."""

    review_id: str
    text: str
    rating: float | None = None
    day: str | None = None
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopFacts:
    """What pages say about the shop itself."""

    name: str | None = None
    kind: str | None = None
    address: str | None = None
    rating: float | None = None
    reviews: int | None = None

    def or_else(self, other: ShopFacts) -> ShopFacts:
        """Return these facts, with those of another for what is missing."""
        return ShopFacts(
            name=self.name or other.name,
            kind=self.kind or other.kind,
            address=self.address or other.address,
            rating=other.rating if self.rating is None else self.rating,
            reviews=other.reviews if self.reviews is None else self.reviews,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """What was found on a page."""

    shop: ShopFacts = field(default_factory=ShopFacts)
    reviews: Sequence[Review] = ()


def make_review(
    text: Any,
    *,
    url: str,
    rating: float | None = None,
    day: str | None = None,
    author: str = "",
    title: str = "",
) -> Review | None:
    """Return a review; None if it says nothing. Its id is the same wherever it stands."""
    body = clean_text(text)
    head = clean_text(title)
    if head and head.casefold() not in body.casefold():
        body = f"{head}. {body}" if body else head
    if not body:
        return None
    told = "\n".join((body, day or "", author.strip(), "" if rating is None else f"{rating:g}"))
    digest = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:24]
    return Review(review_id=digest, text=body, rating=rating, day=day, url=url)


def clean_text(value: Any, limit: int = LONGEST_TEXT) -> str:
    """Return a text of a page in one line, without tags and marks that are not seen."""
    if not isinstance(value, str):
        return ""
    plain = _TAG.sub(" ", unicodedata.normalize("NFC", value[: 4 * limit]))
    seen = "".join(each if each.isprintable() or each.isspace() else " " for each in plain)
    return " ".join(seen.split())[:limit]


def scaled(value: Any, best: Any = None, worst: Any = None) -> float | None:
    """Return a rating as one of 5; None if it is none, or not within its own scale."""
    number, top, low = number_of(value), number_of(best), number_of(worst)
    top = BEST if top is None or top <= 0 else top
    if number is None or not (0 if low is None else min(low, 0)) <= number <= top:
        return None
    return round(number / top * BEST, 2)


def number_of(value: Any) -> float | None:
    """Return the first number of a text, or a number as it is."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e9 else None
    if not isinstance(value, str) or len(value) > 200:
        return None
    found = _NUMBER.search(value)
    return None if found is None else float(found.group()[:20].replace(",", "."))


def day_of(value: Any, today: date | None = None) -> str | None:
    """Return a day as 2026-11-17, from what pages write; None for none, and for days to come."""
    if not isinstance(value, str):
        return None
    found = _DAY.search(value[:100])
    try:
        if found is not None:
            day = date(int(found.group(1)), int(found.group(2)), int(found.group(3)))
        else:
            day = datetime.fromisoformat(value.strip()[:40]).date()
    except ValueError:
        return None
    # One day ahead: somewhere it is tomorrow.
    last = (today or date.today()).toordinal() + 1
    return day.isoformat() if day.toordinal() <= last else None
